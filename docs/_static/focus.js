// Blocks that scroll sideways can be reached and scrolled by the keyboard.
"use strict";

const makeFocusable = () => {
  for (const block of document.querySelectorAll("article pre, article .table-wrapper, .sig")) {
    const scrolls = block.scrollWidth > block.clientWidth;
    if (scrolls) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
};
makeFocusable();
window.addEventListener("resize", makeFocusable);

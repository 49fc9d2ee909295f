// The box that shows only what is named, and links into parts that are folded.
const box = document.getElementById("filter");
if (box) {
  box.parentNode.hidden = false;
  box.oninput = () => {
    const words = box.value.toLowerCase().split(/\s+/);
    for (const part of document.querySelectorAll("[data-n]")) {
      const name = part.dataset.n.toLowerCase();
      part.hidden = !words.every((word) => name.includes(word));
    }
  };
}
const unfold = () => {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let part = place; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
    part.hidden = false;
  }
  place.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

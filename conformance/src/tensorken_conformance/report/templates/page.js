// The box that shows only the parts with the typed names, and links into parts that are folded.
const box = document.getElementById("filter");
if (box) {
  const parts = [...document.querySelectorAll("nav ~ * [data-n], nav ~ [data-n]")];
  const found = box.parentNode.querySelector("output");
  box.parentNode.hidden = false;
  box.oninput = () => {
    const words = box.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const part of parts) {
      const name = part.dataset.n.toLowerCase();
      part.hidden = !words.every((word) => name.includes(word));
      count += !part.hidden;
    }
    found.textContent = box.value.trim() ? `${count} of ${parts.length}` : "";
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

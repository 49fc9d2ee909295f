// The version switch at the foot of the sidebar. `versions.json` at the top of each version lists all of them,
// with their addresses relative to it; `tools/versions.py` writes it.
"use strict";

(async () => {
  const root = document.documentElement.dataset.content_root;
  const select = document.getElementById("site-versions");
  if (!select || !location.protocol.startsWith("http")) return;
  const top = new URL(root, location.href);
  const response = await fetch(new URL("versions.json", top));
  if (!response.ok) return;
  const versions = await response.json();
  if (versions.length < 2) return;
  select.replaceChildren(
    ...versions.map(({ version, url }) => {
      const option = new Option(version, new URL(url, top).href);
      option.selected = option.value === top.href;
      return option;
    }),
  );
  select.disabled = false;
  select.addEventListener("change", async () => {
    const page = location.pathname.slice(top.pathname.length);
    const same = new URL(page, select.value);
    const exists = await fetch(same, { method: "HEAD" }).then((answer) => answer.ok, () => false);
    location.href = exists ? same : select.value;
  });
})();

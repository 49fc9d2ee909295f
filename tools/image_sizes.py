"""The sizes of the images of a page, for HTML: a browser then keeps the place of an image while it loads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3}
"""The pixels of each unit of length in an SVG."""


def size(file: Path) -> tuple[int, int] | None:
    """The width and height of a PNG or an SVG in pixels; None if the file does not say.

    Args:
        file: of the image.
    """
    content = file.read_bytes()
    if content.startswith(b"\x89PNG\r\n\x1a\n"):  # the chunk IHDR is the first one
        return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    tag = re.search(r"<svg\b[^>]*>", content.decode("utf-8"))
    lengths = dict(re.findall(r'\s(width|height)="([^"]*)"', tag[0] if tag else ""))
    found = [re.fullmatch(r"([\d.]+)(px|pt|)", lengths.get(name, "")) for name in ("width", "height")]
    pixels = [round(float(length[1]) * _PIXELS[length[2]]) for length in found if length]
    return (pixels[0], pixels[1]) if len(pixels) == 2 else None


def with_sizes(html: str, files: Mapping[str, Path]) -> str:
    """HTML whose images have widths and heights.

    Args:
        html: with images of any kind.
        files: by the name that ends an image's address. Images of other addresses, and those that have a width,
            stay as they are.
    """

    def sized(tag: re.Match[str]) -> str:
        source = re.search(r'\ssrc="(?:[^"]*/)?([^"/]+)"', tag[0])
        file = files.get(source[1]) if source and not re.search(r"\swidth=", tag[0]) else None
        found = size(file) if file else None
        return tag[0] if found is None else f'<img width="{found[0]}" height="{found[1]}"{tag[0][4:]}'

    return re.sub(r"<img\b[^>]*>", sized, html)

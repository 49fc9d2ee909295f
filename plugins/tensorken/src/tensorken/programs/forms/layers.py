"""The layout of a diagram in layers: each arrow leads downwards, with few crossings.

The four steps are those of Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System
Structures" (1981): layers, waypoints of long arrows, the order within each layer, and coordinates.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP = 18.0
"""The least distance between two boxes of a layer, in pixels; a waypoint needs half as much on each side."""

LAYER_GAP = 34.0
"""The distance between two layers, in pixels."""

SWEEPS = 12
"""How often the order and the coordinates of all layers are improved, alternately downwards and upwards."""

STRAIGHT = 8
"""The weight of a waypoint's error; that of a box is 1."""

Point = tuple[float, float]
Waypoint = tuple[str, int]
"""A node, and the layer that an arrow from it passes; the node's own place has its own layer."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates in pixels, from the upper left corner.

    Attributes:
        centers: the centre of each node's box.
        paths: the points of each arrow, from the lower edge of its start to the upper edge of its end.
        width: the width of the whole.
        height: the height of the whole.
    """

    centers: Mapping[str, Point]
    paths: Sequence[Sequence[Point]]
    width: float
    height: float


def layout(sizes: Mapping[str, Point], arrows: Sequence[tuple[str, str]]) -> Layout:
    """Place nodes of these sizes; a node comes after all nodes that have arrows to it.

    >>> layout({"a": (40.0, 20.0), "b": (60.0, 20.0)}, [("a", "b")]).centers
    {'a': (30.0, 10.0), 'b': (30.0, 64.0)}
    """
    level = _levels(sizes, arrows)
    links = _links(arrows, level)
    order = _ordered(level, links)
    across = _coordinates(order, links, {w: _width(w, level, sizes) for layer in order for w in layer})
    heights = [max([sizes[n][1] for n, at in layer if level[n] == at]) for layer in order]
    tops = [sum(heights[:i]) + i * LAYER_GAP for i in range(len(heights))]
    centers = {n: (across[n, level[n]], tops[level[n]] + heights[level[n]] / 2) for n in sizes}

    def path(start: str, end: str) -> list[Point]:
        (x, y), (last, bottom) = centers[start], centers[end]
        between = range(level[start] + 1, level[end])
        points = [(across[start, i], y) for i in between for y in (tops[i], tops[i] + heights[i])]
        return [(x, y + sizes[start][1] / 2), *points, (last, bottom - sizes[end][1] / 2)]

    width = max([x + sizes[n][0] / 2 for n, (x, _) in centers.items()])
    width = max([width, *[across[w] + GAP / 2 for layer in order for w in layer]])
    return Layout(centers, [path(*arrow) for arrow in arrows], width, tops[-1] + heights[-1])


def _levels(nodes: Iterable[str], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each node: below all nodes with arrows to it; a node without any is just above its first reader."""
    before: dict[str, list[str]] = {n: [] for n in nodes}
    after: dict[str, list[str]] = {n: [] for n in before}
    for start, end in arrows:
        before[end].append(start)
        after[start].append(end)
    level: dict[str, int] = {}
    for node, starts in before.items():
        level[node] = max([level[start] + 1 for start in starts], default=0)
    for node, ends in after.items():
        if ends and not before[node]:
            level[node] = min([level[end] for end in ends]) - 1
    return level


def _links(
    arrows: Sequence[tuple[str, str]], level: Mapping[str, int]
) -> dict[Waypoint, tuple[list[Waypoint], list[Waypoint]]]:
    """The waypoints of all arrows, each with its neighbours above and below; arrows from one node share them."""
    links: dict[Waypoint, tuple[list[Waypoint], list[Waypoint]]] = {
        (n, i): ([], []) for n, i in level.items()
    }
    seen = set()
    for start, end in arrows:
        way = [*[(start, i) for i in range(level[start], level[end])], (end, level[end])]
        for upper, lower in pairwise(way):
            if (upper, lower) not in seen:
                seen.add((upper, lower))
                links.setdefault(lower, ([], []))[0].append(upper)
                links.setdefault(upper, ([], []))[1].append(lower)
    return links


def _ordered(
    level: Mapping[str, int], links: Mapping[Waypoint, tuple[list[Waypoint], list[Waypoint]]]
) -> list[list[Waypoint]]:
    """The waypoints of each layer from left to right: each tends to the mean place of its neighbours."""
    layers: list[list[Waypoint]] = [[] for _ in range(max(level.values()) + 1)]
    for waypoint in links:
        layers[waypoint[1]].append(waypoint)
    best, fewest = layers, _crossings(layers, links)
    for sweep in range(SWEEPS):
        layers = [list(layer) for layer in layers]
        side = sweep % 2
        for above, layer in pairwise(layers if side == 0 else layers[::-1]):
            place = {w: i for i, w in enumerate(above)}
            own = {w: i for i, w in enumerate(layer)}
            layer.sort(key=lambda w: _mean([place[v] for v in links[w][side]], own[w]))
        crossings = _crossings(layers, links)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _crossings(
    layers: Sequence[Sequence[Waypoint]], links: Mapping[Waypoint, tuple[list[Waypoint], list[Waypoint]]]
) -> int:
    """The number of pairs of links that cross."""
    count = 0
    for upper, lower in pairwise(layers):
        place = {w: i for i, w in enumerate(lower)}
        ends: list[int] = []  # of the links further to the left, in order
        for waypoint in upper:
            own = [place[v] for v in links[waypoint][1]]
            count += sum([len(ends) - bisect_right(ends, end) for end in own])
            for end in own:
                insort(ends, end)
    return count


def _coordinates(
    layers: Sequence[Sequence[Waypoint]],
    links: Mapping[Waypoint, tuple[list[Waypoint], list[Waypoint]]],
    widths: Mapping[Waypoint, float],
) -> dict[Waypoint, float]:
    """The horizontal centre of each waypoint; the least is at half its width."""
    across: dict[Waypoint, float] = {}
    for layer in layers:
        across.update(zip(layer, _spread(layer, [0.0] * len(layer), widths), strict=True))
    for sweep in range(SWEEPS):
        side = sweep % 2
        for layer in layers if side == 0 else layers[::-1]:
            wanted = [_mean([across[v] for v in links[w][side]], across[w]) for w in layer]
            across.update(zip(layer, _spread(layer, wanted, widths), strict=True))
    left = min([x - widths[w] / 2 for w, x in across.items()])
    return {w: x - left for w, x in across.items()}


def _spread(
    layer: Sequence[Waypoint], wanted: Sequence[float], widths: Mapping[Waypoint, float]
) -> list[float]:
    """The places that keep the order and distances of a layer, and whose squared errors have the least weighted sum.

    Less the distances, places must not decrease: this is isotonic regression, by pooling adjacent violators.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + GAP)
    pools: list[tuple[float, int, int]] = []  # the mean, the weight and the number of neighbours that touch
    for waypoint, place, offset in zip(layer, wanted, offsets, strict=True):
        mean, weight, count = place - offset, 1 if widths[waypoint] else STRAIGHT, 1
        while pools and pools[-1][0] > mean:
            other, others, n = pools.pop()
            mean = (mean * weight + other * others) / (weight + others)
            weight, count = weight + others, count + n
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _width(waypoint: Waypoint, level: Mapping[str, int], sizes: Mapping[str, Point]) -> float:
    node, at = waypoint
    return sizes[node][0] if level[node] == at else 0.0


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default

"""The memory planner: regions in use at the same time do not overlap, and gaps are reused."""

from __future__ import annotations

import itertools
import random

from core.tests.each import each_of
from tensorken_numpy.compiled.memory import CACHE_LINE, Planner, Region


class FirstFit:
    """The simple method, which looks at all regions each time."""

    def __init__(self) -> None:
        self.size = 0
        self.living: list[Region] = []

    def take(self, size: int) -> Region:
        size = max(CACHE_LINE, -(-size // CACHE_LINE) * CACHE_LINE)
        offset = 0
        for region in self.living:
            if region.offset - offset >= size:
                break
            offset = region.offset + region.size
        self.living = sorted([*self.living, found := Region(offset, size)], key=lambda region: region.offset)
        self.size = max(self.size, offset + size)
        return found


@each_of("seed", range(40))
def test_regions_do_not_overlap_and_need_little_more_memory_than_first_fit(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [
        64 * rng.choice([1, 2, 5, 8, 64, 100, rng.randint(1, 5000)]) - rng.choice([0, 1, 63])
        for _ in range(9)
    ]
    sizes = sizes[: rng.choice([1, 3, 9])]
    planner, plain = Planner(), FirstFit()
    living: list[tuple[Region, Region]] = []
    most = 0
    for _ in range(300):
        if living and rng.random() < 0.5:
            region, other = living.pop(rng.randrange(len(living)))
            planner.free(region)
            plain.living.remove(other)
        else:
            size = rng.choice(sizes)
            living.append((planner.take(size), plain.take(size)))
        regions = sorted([(region.offset, region.size) for region, _ in living])
        assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(regions))
        assert all(offset % CACHE_LINE == 0 and offset + size <= planner.size for offset, size in regions)
        most = max(most, sum(size for _, size in regions))
    assert most <= planner.size <= 1.25 * plain.size
    for region, _ in living:
        planner.free(region)
    planner.take(most)
    assert planner.take(CACHE_LINE).offset >= most, "adjacent gaps were not merged"

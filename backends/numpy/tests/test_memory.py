"""Places of the memory: those that live at one time do not overlap, and gaps are used again."""

from __future__ import annotations

import itertools
import random

from core.tests.each import each_of
from tensorken_numpy.compiled.memory import LINE, Place, Planner


class FirstFit:
    """The plain way, which looks at all places each time."""

    def __init__(self) -> None:
        self.size = 0
        self.living: list[Place] = []

    def take(self, size: int) -> Place:
        size = max(LINE, -(-size // LINE) * LINE)
        offset = 0
        for place in self.living:
            if place.offset - offset >= size:
                break
            offset = place.offset + place.size
        self.living = sorted([*self.living, found := Place(offset, size)], key=lambda place: place.offset)
        self.size = max(self.size, offset + size)
        return found


@each_of("seed", range(40))
def test_places_of_one_time_do_not_overlap_and_take_as_little_as_the_first_that_fit(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [
        64 * rng.choice([1, 2, 5, 8, 64, 100, rng.randint(1, 5000)]) - rng.choice([0, 1, 63])
        for _ in range(9)
    ]
    sizes = sizes[: rng.choice([1, 3, 9])]
    planner, plain = Planner(), FirstFit()
    living: list[tuple[Place, Place]] = []
    most = 0
    for _ in range(300):
        if living and rng.random() < 0.5:
            place, other = living.pop(rng.randrange(len(living)))
            planner.free(place)
            plain.living.remove(other)
        else:
            size = rng.choice(sizes)
            living.append((planner.take(size), plain.take(size)))
        places = sorted([(place.offset, place.size) for place, _ in living])
        assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(places))
        assert all(offset % LINE == 0 and offset + size <= planner.size for offset, size in places)
        most = max(most, sum(size for _, size in places))
    assert most <= planner.size <= 1.25 * plain.size
    for place, _ in living:
        planner.free(place)
    planner.take(most)
    assert planner.take(LINE).offset >= most, "what was free is one gap again"

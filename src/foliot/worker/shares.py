"""How a worker divides its claims among its lanes: by the weights of their queues, while all of them have work."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple


class Portion(NamedTuple):
    lane: int
    most: int


class Shares:
    """Feeds first whoever got least so far, measured by weight.

    A lane that ran dry leaves its share to the others, and comes back with neither credit nor debt. The lanes of one
    queue divide its weight evenly among those that have work. Until it is known better, a lane is taken to have some.
    """

    def __init__(self, lanes: Mapping[int, str], weights: Mapping[str, int]) -> None:
        """`lanes`, each with its queue, and the weights of the queues."""
        self._queue = dict(lanes)
        self._weights = weights
        self._turn = list(lanes)
        self._got = dict.fromkeys(lanes, 0.0)
        self._dry: set[int] = set()
        self._room = 0
        self._asked: list[Portion] = []
        self._weight: dict[int, float] = {}

    @property
    def lanes(self) -> list[int]:
        return list(self._queue)

    def add(self, lanes: Mapping[int, str]) -> None:
        """Divide among these as well, which begin with neither credit nor debt; what it knows stays as it is."""
        least = min((got for lane, got in self._got.items() if lane not in self._dry), default=0.0)
        for lane, queue in lanes.items():
            if lane not in self._queue:
                self._queue[lane] = queue
                self._turn.append(lane)
                self._got[lane] = least

    def divide(self, room: int) -> list[Portion]:
        """Which lanes to ask for how many, in this order, until there are `room`.

        They may have more between them: what one does not give, the next ones do.
        """
        self._turn.append(self._turn.pop(0))
        self._room = room
        busy = [lane for lane in self._turn if lane not in self._dry]
        self._even_out(busy)
        if busy and len(self._turn) > 1:
            self._asked = self._portions(busy, room)
        else:
            self._asked = [Portion(lane, room) for lane in self._turn]
        return self._asked

    def took(self, counts: Mapping[int, int]) -> None:
        """How many runs each lane gave, of what `divide` asked for last."""
        total = 0
        for lane, most in self._asked:
            count = counts.get(lane, 0)
            total += count
            self._got[lane] += count / self._weight.get(lane, 1.0)
            if count >= most:
                self._dry.discard(lane)
            elif total < self._room:  # else it was not asked to the end
                self._dry.add(lane)

    def _even_out(self, busy: Iterable[int]) -> None:
        least = min((self._got[lane] for lane in busy), default=0.0)
        for lane in self._turn:
            self._got[lane] = 0.0 if lane in self._dry else self._got[lane] - least

    def _portions(self, busy: list[int], room: int) -> list[Portion]:
        """The dry ones come first: they hardly ever have something, and must not wait for a turn when they do."""
        rivals = Counter(self._queue[lane] for lane in busy)
        heavy = sum(self._weights[queue] for queue in rivals)
        portions = []
        for lane, queue in self._queue.items():
            weight, is_dry = self._weights[queue], lane in self._dry
            self._weight[lane] = weight / (rivals[queue] + is_dry)
            if is_dry:
                all_of_them = heavy if rivals[queue] else heavy + weight
                portions.append(Portion(lane, ceil(room * self._weight[lane] / all_of_them)))
        hungry = sorted(busy, key=self._got.__getitem__)
        level = self._level(hungry, room)
        return portions + [
            Portion(lane, max(1, ceil(self._weight[lane] * (level - self._got[lane])))) for lane in hungry
        ]

    def _level(self, hungry: list[int], room: int) -> float:
        """How much each would have got by its weight, if `room` more were given to those who have least."""
        level = weight = given = 0.0
        for place, lane in enumerate(hungry, 1):
            weight += self._weight[lane]
            given += self._weight[lane] * self._got[lane]
            level = (room + given) / weight
            if place < len(hungry) and level <= self._got[hungry[place]]:
                break
        return level

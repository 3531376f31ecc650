"""The picture and the page of a report."""

import random
from xml.etree import ElementTree as ET

from chaos.check.recovery import BYSTANDERS
from chaos.figures import percentiles, windows
from chaos.records import Fault
from chaos.report import TRIED, page
from chaos.svg import lateness_over_time

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_well_formed_and_shades_every_fault():
    dice = random.Random(1)
    points = [(n / 50, dice.expovariate(5)) for n in range(5_000)]
    picture = ET.fromstring(lateness_over_time(points, [(10, 20), (50, 50)], title="a < b & c"))
    shades = [each for each in picture.iter(f"{SVG}rect") if each.get("class") == "fault"]
    assert len(shades) == 2
    assert all(float(each.get("width", 0)) >= 1 for each in shades)
    lines = {each.get("class"): each.get("points", "").split() for each in picture.iter(f"{SVG}polyline")}
    assert len(lines["typical"]) == len(lines["worst"]) == 100
    assert picture.findtext(f"{SVG}title") == "a < b & c"


def test_a_picture_of_nothing_is_a_picture():
    ET.fromstring(lateness_over_time([], [], title="nothing"))


def test_faults_that_overlap_are_one_window():
    def fault(began: float, ended: float) -> Fault:
        return Fault(kind="kill", target="worker-0", began=began, ended=ended)

    assert windows([fault(5, 9), fault(1, 2), fault(8, 12)]) == [(1, 2), (5, 12)]


def test_percentiles_name_the_worst():
    assert percentiles([]) == {"count": 0}
    assert percentiles([float(n) for n in range(1001)]) == {
        "count": 1001,
        "p50": 500,
        "p95": 950,
        "p99": 990,
        "p99.9": 999,
        "max": 1000,
    }


def test_the_page_names_what_was_left_out_and_how_it_went():
    found = {
        "seed": 7,
        "seconds": 60.0,
        "acknowledged": 12_345,
        "effects": 67_890,
        "judgedIn": 12.345,
        "verdict": {"violations": 1},
        "operations": {"ok": 3},
        "faults": {"kill": 2},
        "faultsInOrder": [{"at": 12.3, "kind": "kill", "target": "worker-0", "lasted": 4.0}],
        "quietTimes": [{"from": 41.2, "to": 58.9, "after": "kill worker-0", "count": 1_234, "p50": 0.02, "p99": 1.86}],
        "writesWithoutRoom": 1_234,
        "notPossibleHere": {"diskFull": "this needs root"},
        "lateness": {"quiet": {"count": 1, "p50": 0.01}, "around faults": {"count": 0}},
        "failures": ["violations: 1"],
        "shortcomings": ["that takes 600 s, and then nothing may be lacking"],
        "unmeasured": ["L4 fair shares: never did two tenants have a backlog for ten seconds"],
        "missedTargets": ["L6 share of answered calls: 0.9976, and 0.999 is the target"],
        "unjudged": "3 of 400 jobs",
        "recovery": {
            "worker kill to restart of its runs": {"faults": 1, "cases": 1, "worst": 16.2, "bound": 20.0},
            "scheduler kill to next fire": {"faults": 1, "cases": 1, "worst": 10.1, "bound": 10.0},
            BYSTANDERS: {"faults": 2, "cases": 3, "worst": 42.9},
        },
        "zombies": {"handlers that ended late": 11},
        **dict.fromkeys(TRIED, "known"),
        "command": "make chaos SEED=7",
        "cameToRest": False,
    }
    text = page(found)
    for part in (
        "12,345",
        "67,890 effects were read and judged in 12.3 s.",
        f"| {BYSTANDERS} | 2 | 3 | 42.90 s | - | - |",
        "1 violations",
        "The run **failed**:\n- violations: 1\n",
        "It is no proof:\n- that takes 600 s",
        "Not measured, for there was nothing to measure:\n- L4 fair shares",
        "## Left out\n\n| kind | why |\n|---|---|\n| diskFull | this needs root |",
        "failed on the full disk: 1,234.",
        "| 16.20 s | 20.00 s | yes |",
        "**no**",
        "did not come to rest",
        "SEED=7",
        "- L6 share of answered calls: 0.9976",
        "3 of 400 jobs",
        "| 12.3 | kill | worker-0 | 4.0 s |",
        "| 41 | 59 | kill worker-0 | 1,234 | 0.020 | 0.000 | 1.860 | 0.000 | 0.000 |",
    ):
        assert part in text

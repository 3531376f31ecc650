"""Which edition of the time zone database is in force."""

import zoneinfo

import pytest

from foliot.kit import zonedata
from foliot.kit.zonedata import ZoneData, zone_data


@pytest.fixture
def look(monkeypatch, tmp_path):
    """Look at folders of this test's making; the answer is not remembered."""

    def _look(*files, folders=("zones",)):
        for path, text in files:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        monkeypatch.setattr(zoneinfo, "TZPATH", tuple(str(tmp_path / folder) for folder in folders))
        found = zone_data.__wrapped__()
        return found._replace(source=found.source.removeprefix(f"{tmp_path}/"))

    return _look


LONDON = ("zones/Europe/London", "TZif")


def test_linux_says_it_in_its_source_file(look):
    assert look(LONDON, ("zones/tzdata.zi", "# version 2026c\n# more")) == ZoneData("2026c", "zones")


def test_bsd_says_it_in_a_file_of_its_own(look):
    assert look(LONDON, ("zones/+VERSION", "2025b\n")) == ZoneData("2025b", "zones")


def test_some_say_it_nowhere(look):
    assert look(LONDON, ("zones/tzdata.zi", "# nothing here")) == ZoneData("unknown", "zones")


def test_the_first_folder_that_has_zones_counts(look):
    second = ("other/Europe/London", "TZif")
    found = look(LONDON, second, ("other/tzdata.zi", "# version 2024a"), folders=("empty", "other", "zones"))
    assert found == ZoneData("2024a", "other")


def test_without_any_the_package_is_used(look):
    import tzdata

    assert look(folders=("empty",)) == ZoneData(tzdata.IANA_VERSION, "the package tzdata")


def test_with_nothing_at_all_it_says_so(look, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(zonedata, "import_module", missing)
    assert look(folders=("empty",)) == ZoneData("unknown", "nowhere")

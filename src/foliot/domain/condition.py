"""Whether a change may be made: only to the version that its author has seen, or only if there is nothing yet."""

import hashlib
import re
from typing import Final, NamedTuple

from foliot.domain.errors import InvalidField, Stale

_TAGS: Final = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')
_TAG: Final = re.compile(r'"([^"]*)"')
_OURS: Final = re.compile(r"(\d{1,18})(?:-[0-9a-f]{12})?")
_LONGEST: Final = 1_000


class Condition(NamedTuple):
    """What the headers If-Match and If-None-Match ask of the thing that is to be changed."""

    versions: frozenset[int] | None = None
    """One of these; none for any."""
    must_exist: bool = False
    must_be_new: bool = False

    def check(self, present: int | None) -> None:
        """Refuse the change unless it was meant for the `present` version; none if there is nothing yet."""
        if self.must_be_new and present is not None:
            raise Stale("there is one already", "leave out If-None-Match to replace it", present)
        if not self.must_exist:
            return
        if present is None:
            raise Stale("there is none to change yet", "leave out If-Match to create it", None)
        if self.versions is not None and present not in self.versions:
            said = f"it was changed since: it is at version {present} now"
            raise Stale(said, "read it again, and repeat the change if it still makes sense", present)


UNCONDITIONAL: Final = Condition()


def condition_of(if_match: str | None, if_none_match: str | None) -> Condition:
    """What those headers say. A tag that is not one of ours matches nothing."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise InvalidField("If-None-Match", "can only be * for a change", "use If-Match for a version that was read")
    if if_match is None:
        return Condition(must_be_new=if_none_match is not None)
    if if_match.strip() == "*":
        return Condition(None, must_exist=True, must_be_new=if_none_match is not None)
    ours = (_OURS.fullmatch(tag) for tag in tags_in(if_match))
    versions = frozenset(int(each[1]) for each in ours if each is not None)
    return Condition(versions, must_exist=True, must_be_new=if_none_match is not None)


def tags_in(header: str) -> list[str]:
    """The tags of a list of them, without quotes."""
    if len(header) > _LONGEST or not _TAGS.fullmatch(header):
        raise InvalidField("If-Match", "is not a list of tags", 'pass the ETag of the answer, with its quotes: "7"')
    return _TAG.findall(header)


def tag_of(version: int, content: bytes) -> str:
    """The ETag of a thing: its version, which a change must name, and what it looks like just now."""
    return f'"{version}-{hashlib.blake2b(content, digest_size=6).hexdigest()}"'


def is_known(if_none_match: str, tag: str) -> bool:
    """Whether the reader has seen exactly this. A header that makes no sense is as if it were not there."""
    if if_none_match.strip() == "*":
        return True
    return len(if_none_match) <= _LONGEST and tag.strip('"') in _TAG.findall(if_none_match)

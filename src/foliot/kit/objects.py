"""Blobs under names, outside of the database: in a folder, or in a bucket of S3. What is there is never overwritten."""

import asyncio
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


class ObjectsError(Exception):
    """The store of objects cannot be used; the message says why."""


class Objects(Protocol):
    async def put(self, name: str, content: bytes) -> bool:
        """Keep it for good, once this has returned. False, and nothing changed, if there is one of that name."""

    async def get(self, name: str) -> bytes | None: ...

    async def list(self, prefix: str) -> Sequence[str]:
        """The names that begin so, in order."""


def open_objects(place: str) -> Objects:
    """`s3://bucket/prefix`, `file:///folder` or a folder."""
    parts = urlsplit(place)
    if parts.scheme == "s3":
        return _bucket(place)
    if parts.scheme in {"", "file"} and parts.netloc == "" and parts.path:
        return Folder(Path(unquote(parts.path) if parts.scheme else place))
    raise ObjectsError(f"{place!r} is no place for objects: s3://bucket/prefix, or a folder")


class Folder:
    """One file for each. Made whole or not at all: a name appears when all that it stands for is on disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, name: str, content: bytes) -> bool:
        return await asyncio.to_thread(self._put, self._path(name), content)

    async def get(self, name: str) -> bytes | None:
        try:
            return await asyncio.to_thread(self._path(name).read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ObjectsError(f"{name} cannot be read: {error}") from None

    async def list(self, prefix: str) -> Sequence[str]:
        return await asyncio.to_thread(self._list, prefix)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ObjectsError(f"{name!r} is no name for an object")
        return self._root / name

    def _put(self, path: Path, content: bytes) -> bool:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, path)  # unlike a rename, it fails if somebody was first
            except FileExistsError:
                return False
            _sync(path.parent)
        except OSError as error:
            raise ObjectsError(f"{path} cannot be written: {error}") from None
        finally:
            with suppress(OSError):
                draft.unlink()
        return True

    def _list(self, prefix: str) -> Sequence[str]:
        found = (path for path in self._root.rglob("*") if path.is_file() and not path.name.startswith("."))
        return sorted(name for path in found if (name := path.relative_to(self._root).as_posix()).startswith(prefix))


def _bucket(place: str) -> "Bucket":
    """S3 and what speaks like it, configured by the `AWS_…` variables."""
    from obstore.store import S3Store  # noqa: PLC0415 - only who has a bucket needs it

    try:
        return Bucket(S3Store.from_url(place))
    except Exception as error:
        raise ObjectsError(f"{place} cannot be used: {error}") from error


class Bucket:
    """A store of obstore's."""

    def __init__(self, store: Any) -> None:
        import obstore  # noqa: PLC0415 - as above

        self._obstore: Any = obstore
        self._store = store

    async def put(self, name: str, content: bytes) -> bool:
        try:
            await self._obstore.put_async(self._store, name, content, mode="create")
        except self._obstore.exceptions.AlreadyExistsError:
            return False
        except self._obstore.exceptions.BaseError as error:
            raise ObjectsError(f"{name} cannot be written: {error}") from error
        return True

    async def get(self, name: str) -> bytes | None:
        try:
            found = await self._obstore.get_async(self._store, name)
            return bytes(await found.bytes_async())
        except (self._obstore.exceptions.NotFoundError, FileNotFoundError):
            return None
        except self._obstore.exceptions.BaseError as error:
            raise ObjectsError(f"{name} cannot be read: {error}") from error

    async def list(self, prefix: str) -> Sequence[str]:
        # Buckets list by whole folders: what comes after the last slash is looked at here.
        folder, _, _ = prefix.rpartition("/")
        names: list[str] = []
        try:
            async for page in self._obstore.list(self._store, prefix=folder or None):
                names += [str(each["path"]) for each in page]
        except self._obstore.exceptions.BaseError as error:
            raise ObjectsError(f"{prefix} cannot be listed: {error}") from error
        return sorted(name for name in names if name.startswith(prefix))


def _sync(folder: Path) -> None:
    """A new name is on disk when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

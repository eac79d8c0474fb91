"""Read tar entries whose extended headers can't fill the memory."""

from __future__ import annotations

import tarfile
from typing import IO, Any, cast

MAX_GLOBAL_BYTES = 1024
"""Headers that apply to all later entries: tarfile copies them to each entry."""
MAX_HEADER_BYTES = 8 * 1024 * 1024
"""All extended headers together; tarfile keeps them while the archive is open."""
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_SPARSE = b"GNU.sparse."


class Entry(tarfile.TarInfo):
    """An entry whose extended headers are checked before tarfile decodes them."""

    def _proc_member(self, archive: Archive) -> Any:
        # tarfile reads the whole map of a sparse file into a list.
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("it has sparse files")
        if self.type in _EXTENDED:
            archive.check_extended(self)
        return super()._proc_member(archive)  # type: ignore[misc]  # tarfile's hook for subclasses has no types


class Archive(tarfile.TarFile):
    """A tar whose headers are limited. Raises `tarfile.ReadError` for more."""

    tarinfo = Entry
    header_bytes = 0
    global_bytes = 0

    def check_extended(self, header: tarfile.TarInfo) -> None:
        """Count a header, and leave its content to be read."""
        size = abs(header.size)
        self.header_bytes += size
        if header.type == tarfile.XGLTYPE:
            self.global_bytes += size
        if self.header_bytes > MAX_HEADER_BYTES or self.global_bytes > MAX_GLOBAL_BYTES:
            raise tarfile.ReadError("its extended headers are too large")
        file = cast(IO[bytes], self.fileobj)
        start = file.tell()
        if _SPARSE in file.read(size):
            raise tarfile.ReadError("it has sparse files")
        file.seek(start)

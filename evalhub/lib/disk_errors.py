"""Recognise the errors of full and failing disks, of this machine's and of the database's."""

from __future__ import annotations

import errno

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
SQLITE_FULL = (10, 13)
"""SQLITE_IOERR and SQLITE_FULL."""


def is_database_full(error: BaseException) -> bool:
    """Return whether the database's disk is full or failing."""
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is not None:
        # The lowest byte of an extended code is the primary code.
        return code & 0xFF in SQLITE_FULL
    # SQLSTATEs disk_full and io_error.
    return getattr(error.__cause__, "sqlstate", None) in ("53100", "58030")


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error, or what caused it, is a full or failing disk."""
    while error is not None:
        if (isinstance(error, OSError) and error.errno in FULL) or is_database_full(error):
            return True
        error = error.__cause__ or error.__context__
    return False

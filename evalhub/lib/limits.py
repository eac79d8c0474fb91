"""Limits of what other people and programs send that more than one module needs."""

LONGEST_NAME = 200
"""Characters of a name, such as that of a measure, a subcommand, a branch or a worker."""
LONGEST_ERROR = 500
"""Characters of what a program or a service said, in an error."""
LONGEST_REASON = 5_000
"""Characters of a reason or a note that somebody writes."""
LONGEST_ADDRESS = 4_000
"""Characters of a path with its query; a little less than gunicorn takes."""
LONGEST_TEXT = 200_000
"""Characters of an answer, an output, a script or a message that are read or stored."""
LONGEST_LINE = 256_000
"""Characters of a line that are read as a command or as JSON."""
MOST_LINES = 2_000
"""Lines of an agent's output that are read at once."""
LONGEST_TRANSCRIPT = 1_000_000
"""Characters of a transcript that are searched, or of one that is pasted."""
LARGEST_FILE = 1 << 20
"""Bytes of a file with settings, a script or a rubric, and of one line of an agent's output."""
LARGEST_MESSAGE = 16 << 20
"""Bytes of one message, of an agent's answer, or of its log or session."""
LARGEST_RECORD = 64 << 20
"""Bytes of everything that is recorded of a trial."""
LARGEST_EXIT_CODE = 2**31 - 1
"""The largest value of the column; programs report exit codes, so any number may come."""
DEEPEST_JSON = 60
"""Levels of lists and objects within each other."""

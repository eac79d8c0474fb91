"""Programs that start another program: what `env A=1 timeout 5 npx tool list` really runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from evaluators.tool_use.shell_words import Word

SHELLS = frozenset(["sh", "bash", "zsh", "dash", "ksh", "ash", "fish"])
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*\+?=")
_PROGRAM_SUFFIX = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)
_VERSIONED = re.compile(r"^(python|pypy|ruby|perl|php|node|lua)[\d.]+$")
SCRIPT_SUFFIX = re.compile(r"\.(?:py|pyz|js|mjs|cjs|ts|mts|rb|pl|php|sh|bash|lua)$")


class Launcher(Struct, frozen=True):
    """How a launcher's arguments lead to the command."""

    values: frozenset[str] = frozenset()
    """Options with a value in the next word."""
    operands: int = 0
    """Words before the command that aren't options, such as the host of `ssh`."""
    is_script: bool = False
    """Whether its words are a shell script, as those of `ssh`."""
    repeats: bool = False
    """Whether it runs the command any number of times."""
    image: bool = False
    """Whether the last operand names an image whose own program may run."""
    refused: frozenset[str] = frozenset()
    """Options with which it runs nothing."""
    scripts: frozenset[str] = frozenset()
    """Options whose value is a shell script."""
    modules: frozenset[str] = frozenset()
    """Options whose value is the program, as `-m` of Python."""
    inline: frozenset[str] = frozenset()
    """Options whose value is code in another language."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONTAINER_RUN = _words(
    "-a --attach --add-host --cap-add --cap-drop --cgroupns --cpus --device --dns -e --env --env-file "
    "--entrypoint --expose --gpus --group-add -h --hostname --ip --ipc -l --label --link --log-driver --log-opt "
    "-m --memory --mount --name --network --net --network-alias --pid --platform -p --publish --pull --restart "
    "--runtime --security-opt --shm-size --stop-signal --tmpfs --ulimit -u --user --userns -v --volume "
    "--volumes-from -w --workdir"
)
_CONTAINER_EXEC = _words("-e --env --env-file --detach-keys -u --user -w --workdir --index")
_RUN = Launcher(_CONTAINER_RUN, operands=1, image=True)
_EXEC = Launcher(_CONTAINER_EXEC, operands=1)
_SERVICE = Launcher(_CONTAINER_RUN, operands=1)
_PLAIN = Launcher()
_PACKAGE = Launcher(_words("-p --package -c --call"), scripts=_words("-c --call"))
_UV_RUN = Launcher(
    _words("--with --with-editable --with-requirements --extra --group --no-group --env-file -p --python "
           "--project --directory --package --index -f --find-links --from "
           "--config-file --cache-dir --color"),
    modules=_words("-m --module"),
)  # fmt: skip
_CONTAINERS: Mapping[str, Launcher] = {
    "exec": _EXEC,
    "run": _RUN,
    "container exec": _EXEC,
    "container run": _RUN,
    "compose exec": _SERVICE,
    "compose run": _SERVICE,
}
_NPM: Mapping[str, Launcher] = {"exec": _PACKAGE, "x": _PACKAGE, "dlx": _PACKAGE}

LAUNCHERS: Mapping[str, Launcher] = {
    "env": Launcher(_words("-u --unset -C --chdir -S --split-string")),
    "sudo": Launcher(_words("-u -g -h -p -C -D -R -T -U --user --group"), refused=_words("-l -v -k -K -e")),
    "doas": Launcher(_words("-u -C")),
    "su": Launcher(_words("-s --shell -g --group"), operands=9, scripts=_words("-c --command")),
    "timeout": Launcher(_words("-s --signal -k --kill-after"), operands=1),
    "gtimeout": Launcher(_words("-s --signal -k --kill-after"), operands=1),
    "nohup": _PLAIN,
    "exec": Launcher(_words("-a")),
    "command": Launcher(refused=_words("-v -V")),
    "builtin": _PLAIN,
    "nice": Launcher(_words("-n --adjustment")),
    "ionice": Launcher(_words("-c --class -n --classdata"), refused=_words("-p --pid")),
    "chrt": Launcher(operands=1),
    "taskset": Launcher(operands=1),
    "stdbuf": Launcher(_words("-i --input -o --output -e --error")),
    "setsid": _PLAIN,
    "time": Launcher(_words("-f --format -o --output")),
    "strace": Launcher(_words("-e -o -s -p -a -b -E -I -O -P -S -u -U -X")),
    "ltrace": Launcher(_words("-e -o -s -p -a -n -l -u")),
    "unbuffer": _PLAIN,
    "chronic": _PLAIN,
    "caffeinate": Launcher(_words("-t -w")),
    "flock": Launcher(_words("-w --timeout -E"), operands=1, scripts=_words("-c --command")),
    "chroot": Launcher(operands=1),
    "script": Launcher(_words("-O -I -B -T -o"), operands=9, scripts=_words("-c --command")),
    "watch": Launcher(_words("-n --interval"), is_script=True, repeats=True),
    "xargs": Launcher(
        _words("-n --max-args -P --max-procs -I -L --max-lines -s --max-chars -d --delimiter -a --arg-file -E"),
        repeats=True,
    ),
    "parallel": Launcher(_words("-j --jobs -a --arg-file -n -N -I -L --results --joblog --timeout"), repeats=True),
    "ssh": Launcher(
        _words("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B"), operands=1, is_script=True
    ),
    "npx": _PACKAGE,
    "bunx": _PACKAGE,
    "pnpx": _PACKAGE,
    "uvx": _UV_RUN,
    "eval": Launcher(is_script=True),
}  # fmt: skip

SUBCOMMANDS: Mapping[str, tuple[frozenset[str], Mapping[str, Launcher]]] = {
    "npm": (_words("-w --workspace --prefix -C"), _NPM),
    "pnpm": (_words("-C --dir --filter -F"), {**_NPM, "run": _PLAIN}),
    "yarn": (_words("--cwd"), {**_NPM, "run": _PLAIN, "": _PLAIN}),
    "bun": (frozenset(), {"x": _PACKAGE, "run": _PLAIN}),
    "deno": (frozenset(), {"run": Launcher(_words("-c --config --import-map"))}),
    "uv": (_words("--directory --project --config-file"), {"run": _UV_RUN, "tool run": _UV_RUN}),
    "poetry": (_words("-C --directory -P --project"), {"run": _PLAIN}),
    "pipx": (frozenset(), {"run": Launcher(_words("--spec --python --pip-args --with"))}),
    "pipenv": (frozenset(), {"run": _PLAIN}),
    "pdm": (_words("-p --project"), {"run": _PLAIN}),
    "hatch": (_words("-e --env -p --project"), {"run": _PLAIN}),
    "rye": (frozenset(), {"run": _PLAIN}),
    "pixi": (frozenset(), {"run": Launcher(_words("-e --environment --manifest-path")), "exec": _PLAIN}),
    "conda": (frozenset(), {"run": Launcher(_words("-n --name -p --prefix --cwd"))}),
    "mamba": (frozenset(), {"run": Launcher(_words("-n --name -p --prefix --cwd"))}),
    "micromamba": (frozenset(), {"run": Launcher(_words("-n --name -p --prefix --cwd"))}),
    "bundle": (frozenset(), {"exec": _PLAIN}),
    "mise": (frozenset(), {"exec": Launcher(operands=0), "x": _PLAIN}),
    "asdf": (frozenset(), {"exec": _PLAIN}),
    "direnv": (frozenset(), {"exec": Launcher(operands=1)}),
    "busybox": (frozenset(), {"": _PLAIN}),
    "docker": (_words("--context -c -H --host --config -l --log-level"), _CONTAINERS),
    "podman": (_words("--connection -c --url"), _CONTAINERS),
    "docker-compose": (
        _words("-f --file -p --project-name --profile --env-file"),
        {"exec": _SERVICE, "run": _SERVICE},
    ),
    "kubectl": (
        _words("-n --namespace --context --cluster --kubeconfig"),
        {"exec": Launcher(_words("-c --container -n --namespace --context -f --filename"), operands=1)},
    ),
    "oc": (_words("-n --namespace"), {"exec": Launcher(_words("-c --container -n --namespace"), operands=1)}),
}

INTERPRETERS: Mapping[str, Launcher] = {
    "python": Launcher(_words("-W -X -Q"), modules=_words("-m"), inline=_words("-c")),
    "pypy": Launcher(_words("-W -X"), modules=_words("-m"), inline=_words("-c")),
    "py": Launcher(modules=_words("-m"), inline=_words("-c")),
    "node": Launcher(
        _words("-r --require --loader --import --env-file -C --conditions"),
        inline=_words("-e --eval -p --print"),
    ),
    "ruby": Launcher(_words("-I -r -C"), inline=_words("-e")),
    "perl": Launcher(_words("-I -M"), inline=_words("-e -E")),
    "php": Launcher(_words("-d -c"), inline=_words("-r")),
    "lua": Launcher(_words("-l"), inline=_words("-e")),
    "tsx": _PLAIN,
    "ts-node": Launcher(_words("-P --project"), inline=_words("-e")),
    "ld.so": _PLAIN,
}


class Opened(Struct, frozen=True):
    """What a launcher runs."""

    launcher: str
    words: tuple[Word, ...] = ()
    script: str | None = None
    """A shell script, in place of words."""
    repeats: bool = False
    image: tuple[Word, ...] = ()
    """The image's name and the words behind it, which may be a program and its arguments."""
    runs_script: bool = False
    """Whether the first word is a script's path or a module's name, not a program."""


def program_name(word: str) -> str:
    """Return a program's name without its folders and without the suffix of a Windows program."""
    name = word.rstrip("/").rsplit("/", 1)[-1]
    if "\\" in name:
        name = name.rsplit("\\", 1)[-1]
    return _PROGRAM_SUFFIX.sub("", name) or word


def interpreter_name(program: str) -> str:
    """Return an interpreter's name without its version; other names as they are."""
    match = _VERSIONED.match(program)
    return match[1] if match else program


def is_assignment(word: Word) -> bool:
    """Return whether a word before a command is an assignment."""
    return _ASSIGNMENT.match(word.value) is not None


def open_launcher(words: Sequence[Word]) -> Opened | None:
    """Return what the command behind a launcher is; None if the words aren't a launcher or run nothing."""
    if not words:
        return None
    program = program_name(words[0].value)
    if program in SHELLS:
        return _shell(program, words)
    if program in ("powershell", "pwsh", "cmd"):
        return _windows_shell(program, words)
    if program == "find":
        for at, word in enumerate(words):
            if word.value in ("-exec", "-execdir", "-ok", "-okdir"):
                rest = words[at + 1 :]
                end = next((n for n, each in enumerate(rest) if each.value in (";", "+")), len(rest))
                ends_all = end < len(rest) and rest[end].value == "+"
                return Opened("find +" if ends_all else "find", tuple(rest[:end]), repeats=True)
        return None
    if launcher := INTERPRETERS.get(interpreter_name(program)):
        return _behind(program, launcher, words, 1, runs_script=True)
    if launcher := LAUNCHERS.get(program):
        return _behind(program, launcher, words, 1)
    if program in SUBCOMMANDS:
        return _subcommand(program, words)
    return None


def _subcommand(program: str, words: Sequence[Word]) -> Opened | None:
    values, known = SUBCOMMANDS[program]
    at = _after_options(words, 1, values)
    first = words[at].value if at < len(words) else ""
    values = SUBCOMMANDS["docker-compose"][0] if first == "compose" else frozenset()
    after = _after_options(words, at + 1, values)
    second = words[after].value if after < len(words) else ""
    if launcher := known.get(f"{first} {second}"):
        return _behind(program, launcher, words, after + 1)
    if launcher := known.get(first):
        return _behind(program, launcher, words, at + 1)
    if first and (launcher := known.get("")):
        return _behind(program, launcher, words, at)
    return None


def _behind(
    program: str, launcher: Launcher, words: Sequence[Word], at: int, *, runs_script: bool = False
) -> Opened | None:
    """Return the command behind a launcher's options and operands, which begin at `at`."""
    operands = launcher.operands
    start = at
    while at < len(words):
        word = words[at].value
        if word == "--":
            at += 1
            break
        if word.startswith("-") and len(word) > 1:
            option = word.split("=", 1)[0]
            if option in launcher.refused or option in launcher.inline:
                return None
            if option in launcher.scripts or _is_letter_of(option, launcher.scripts):
                rest = words[at + 1 : at + 2]
                return Opened(program, script=rest[0].value if rest else None)
            if option in launcher.modules:
                return _open_launcher(program, launcher, words[at + 1 :], runs_script=True)
            at += 2 if option in launcher.values and option == word else 1
            continue
        if program == "env" and _ASSIGNMENT.match(word):
            at += 1
            continue
        if not operands:
            break
        operands -= 1
        at += 1
        if launcher.image and not operands:
            break
    has_image = launcher.image and at > start and not operands
    image = (_image_program(words[at - 1]), *words[at:]) if has_image else ()
    return _open_launcher(program, launcher, words[at:], image=image, runs_script=runs_script)


def _image_program(word: Word) -> Word:
    """Return the program that an image is called by: its name without registry, tag and digest."""
    name = re.split("[:@]", word.value.rsplit("/", 1)[-1], maxsplit=1)[0]
    return Word(name, name)


def _is_letter_of(option: str, known: frozenset[str]) -> bool:
    """Return whether joined short options end with one of these, such as `-qc` with `-c`."""
    return len(option) > 2 and option[1] != "-" and f"-{option[-1]}" in known


def _open_launcher(
    program: str,
    launcher: Launcher,
    words: Sequence[Word],
    *,
    image: tuple[Word, ...] = (),
    runs_script: bool = False,
) -> Opened | None:
    if launcher.is_script:
        script = " ".join(word.value for word in words if not word.redirect)
        return Opened(program, script=script, repeats=launcher.repeats) if script else None
    if not words and not image:
        return None
    return Opened(program, tuple(words), repeats=launcher.repeats, image=image, runs_script=runs_script)


def _after_options(words: Sequence[Word], at: int, values: frozenset[str]) -> int:
    while at < len(words) and words[at].value.startswith("-"):
        at += 2 if words[at].value in values else 1
    return at


def _shell(program: str, words: Sequence[Word]) -> Opened | None:
    """Open `sh -c '…'`, a script that a here-document gives, and `sh FILE`."""
    at = 1
    while at < len(words):
        word = words[at]
        if word.redirect:
            at += 1
            continue
        if not word.value.startswith(("-", "+")) or word.value == "-":
            return Opened(program, tuple(words[at:]), runs_script=True)
        if not word.value.startswith("--") and "c" in word.value:
            following = next((each for each in words[at + 1 :] if not each.redirect), None)
            return Opened(program, script=following.value if following else None)
        at += 2 if word.value in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") else 1
    for word in words[1:]:
        if word.document is not None:
            return Opened(program, script=word.document)
        if word.redirect and word.value.startswith("<<<"):
            return Opened(program, script=word.value[3:])
    return None


def _windows_shell(program: str, words: Sequence[Word]) -> Opened | None:
    for at, word in enumerate(words[1:], start=1):
        option = word.value.lower()
        if option in ("-c", "-command", "/c", "/k"):
            return Opened(program, script=" ".join(each.value for each in words[at + 1 :]).lstrip("& "))
        if option in ("-f", "-file"):
            return Opened(program, tuple(words[at + 1 :]), runs_script=True)
        if not option.startswith(("-", "/")):
            return None
    return None

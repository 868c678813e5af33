"""A box with a real systemd in it: booted in about a second, without Docker, as root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.process import runs

REPOSITORY = Path(__file__).parent.parent.parent
PROGRAM = Path("/opt/edgert/bin/edgert")
_BOOT = Path(__file__).parent / "boot.sh"
_PYTHON = Path("/opt/python")
_PACKAGES = Path("/opt/packages")
_NAMESPACES = ("--fork", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_BOOTED = {"running", "degraded"}


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds; each look at one starts a process, so not too often."""
    return runs.wait_for(condition, what, timeout_s=60, every_s=0.1)


def why_not() -> str:
    """Return why no box can be booted here; empty where one can."""
    if os.geteuid():
        return "it takes root to boot a systemd"
    missing = [name for name in ("unshare", "nsenter", "systemd-analyze") if not shutil.which(name)]
    if missing or not Path("/lib/systemd/systemd").exists():
        return f"not installed: {', '.join(missing) or 'systemd'}"
    if closed := [str(path) for path in _own_cgroups().values() if not os.access(path, os.W_OK)]:
        return f"must not be written: {', '.join(closed)}"
    command = ["unshare", *_NAMESPACES, "mount", "-t", "tmpfs", "try", "/mnt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"no namespaces: {done.stderr.strip()}"


class Box:
    """A booted box.

    The environment that the tests run in is shown in it, as one of its own below /opt.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cgroups = _child_cgroups()
        self._holder = self._start_holder()
        self._init = 0

    def boot(self) -> None:
        """Boot, and wait until everything has started."""
        self._holder.stdin.write("boot\n")
        self._holder.stdin.flush()
        self._init = wait_for(self._find_init, "the box's PID 1")
        state = wait_for(self._booted, "the box has booted")
        assert state in _BOOTED, state

    def halt(self) -> None:
        """Shut down in good order."""
        os.kill(self._init, signal.SIGRTMIN + 4)
        assert self._holder.stdout.readline() == "ended\n"

    def run(
        self, *command: object, check: bool = True, text: str | bytes = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the box."""
        done = subprocess.run(
            [
                *("nsenter", "--target", str(self._init), "--all"),
                *("env", "--ignore-environment", "--chdir=/", f"PATH={_PATH}", "LANG=C.UTF-8"),
                *map(str, command),
            ],
            input=text.encode() if isinstance(text, str) else text,
            capture_output=True,
            timeout=120,
            check=False,
        )
        done = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def edgert(self, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the command line in the box."""
        return self.run(PROGRAM, *arguments, check=check)

    def shell(self, line: str) -> str:
        """Run a line of shell in the box; return its standard output."""
        return self.run("bash", "-c", line).stdout

    def write(self, path: str, text: str | bytes, mode: str = "644") -> None:
        """Write a file in the box."""
        self.run("install", "-D", "-m", mode, "/dev/stdin", path, text=text)

    def read(self, path: str) -> str:
        """Return the text of a file in the box."""
        return self.run("cat", path).stdout

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Return properties of a unit."""
        lines = self.run("systemctl", "show", unit, *(f"--property={n}" for n in names)).stdout
        return dict(line.split("=", 1) for line in lines.splitlines())

    def journal(self, unit: str, *arguments: str) -> str:
        """Return what a unit has logged."""
        return self.run("journalctl", f"--unit={unit}", "--output=cat", *arguments).stdout

    def close(self) -> None:
        """Leave nothing behind."""
        if self._find_init():
            os.kill(self._init, signal.SIGKILL)
        self._holder.stdin.close()
        self._holder.wait(30)
        self._holder.stdout.close()
        for cgroup in self._cgroups:
            for below in sorted(cgroup.rglob("*/"), key=lambda path: -len(path.parts)):
                below.rmdir()
            wait_for(lambda cgroup=cgroup: _is_removed(cgroup), f"{cgroup} is empty")

    def _start_holder(self) -> subprocess.Popen[str]:
        for name in ("root", "memory"):
            (self.folder / name).mkdir()
        (self.folder / "cgroups").write_text("".join(f"{path}\n" for path in self._cgroups))
        binds = {Path(sys.base_prefix): _PYTHON, **_packages()}
        (self.folder / "binds").write_text("".join(f"{a} {b}\n" for a, b in binds.items()))
        command = ["unshare", "--mount", "--propagation", "private", _BOOT, "hold", self.folder]
        log = (self.folder / "console.log").open("w")
        with log:
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def _find_init(self) -> int:
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        if self._holder.poll() is not None:
            raise AssertionError((self.folder / "console.log").read_text())
        for child in children.read_text().split():
            inner = Path(f"/proc/{child}/task/{child}/children").read_text().split()
            if inner and Path(f"/proc/{inner[0]}/comm").read_text() == "systemd\n":
                return int(inner[0])
        return 0

    def _booted(self) -> str:
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state if state in {*_BOOTED, "maintenance"} else ""


def _packages() -> dict[Path, Path]:
    """Return what this process imports from, and where the box shows it."""
    installed = [Path(each) for each in sys.path if each.endswith("-packages")]
    paths = dict.fromkeys([REPOSITORY, *(path for path in installed if path.is_dir())])
    return {path: _PACKAGES / str(number) for number, path in enumerate(paths)}


def _install_program(box: Box) -> None:
    """Make an environment below /opt with what this process imports from."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    home = PROGRAM.parent.parent
    box.write(
        str(home / "pyvenv.cfg"), f"home = {_PYTHON}/bin\nversion = {sys.version.split()[0]}\n"
    )
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        # It looks for its library where it was installed, which no service sees.
        box.write("/etc/ld.so.conf.d/box.conf", f"{_PYTHON}/lib\n")
        box.run("ldconfig")
    box.run("mkdir", "-p", PROGRAM.parent)
    box.run("ln", "-sf", _PYTHON / "bin" / version, PROGRAM.parent / "python3")
    paths = "".join(f"{path}\n" for path in _packages().values())
    box.write(str(home / "lib" / version / "site-packages" / "box.pth"), paths)
    code = "import sys\nfrom edgert.__main__ import main\nsys.exit(main())\n"
    box.write(str(PROGRAM), f"#!{PROGRAM.parent}/python3\n{code}", mode="755")


def _child_cgroups() -> list[Path]:
    """Make a child of each cgroup that this process is in, else PID 1 would take over our own."""
    made = []
    for controllers, parent in _own_cgroups().items():
        cgroup = parent / f"edgert-box-{os.getpid()}"
        cgroup.mkdir(exist_ok=True)
        if controllers == "cpuset":
            for name in ("cpuset.cpus", "cpuset.mems"):
                (cgroup / name).write_text((parent / name).read_text())
        made.append(cgroup)
    return made


def _own_cgroups() -> dict[str, Path]:
    """Return the cgroups that this process is in, by their controllers."""
    mounts = [line.split()[1:4] for line in Path("/proc/mounts").read_text().splitlines()]
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        at = next((Path(m[0]) for m in mounts if _is_hierarchy(m, controllers)), None)
        if at is not None:
            found[controllers] = at / path.lstrip("/")
    return found


def _is_hierarchy(mount: list[str], controllers: str) -> bool:
    _, kind, options = mount
    if not controllers:
        return kind == "cgroup2"
    return kind == "cgroup" and set(controllers.split(",")) <= set(options.split(","))


def _is_removed(cgroup: Path) -> bool:
    try:
        cgroup.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # a process of it is not reaped yet
        return False
    return True


@contextmanager
def booted() -> Iterator[Box]:
    """Boot a box with edgert in it; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="edgert-box-") as folder:
        box = Box(Path(folder))
        try:
            box.boot()
            _install_program(box)
            yield box
        finally:
            box.close()


def main() -> None:
    """Boot a box and open a shell in it, to look around."""
    with booted() as box:
        subprocess.run(["nsenter", "--target", str(box._init), "--all", "bash"], check=False)


if __name__ == "__main__":
    main()

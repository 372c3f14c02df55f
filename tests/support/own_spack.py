"""A tiny world for the real Spack: a repository of recipes, and a program that the test packs.

With them nothing is downloaded, and a lock takes seconds. `tinyio` is compiled by the C compiler of
the machine; the other recipes are only what Spack itself expects of any repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from clone import Done, World, copy_clone

from siteproof.spack import env_files

PROGRAM = '#include <stdio.h>\nint main(void) { puts("tiny 1.0"); return 0; }\n'
BROKEN = "int main(void) { return undeclared; }\n"
RECIPES = {
    "tinyio": """
class Tinyio(Package):
    url = "{url}"
    version("1.0", sha256="{sha256}")

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        Executable("cc")("-O2", "-o", prefix.bin.tinyio, "tiny.c")
""",
    "gcc": """
class Gcc(Package):
    tags = ["compiler"]
    compiler_languages = ["c"]
    cc, cxx, fortran = "/usr/bin/gcc", None, None
    verbose_flags = "-v"
    version("12.2.0", sha256="0" * 64)
    provides("c")
""",
    "libc": 'class Libc(Package):\n    version("1.0", sha256="0" * 64)\n',
    "glibc": 'class Glibc(Package):\n    version("2.36", sha256="0" * 64)\n    provides("libc")\n',
    "gcc_runtime": 'class GccRuntime(Package):\n    version("1.0", sha256="0" * 64)\n',
    "compiler_wrapper": """
class CompilerWrapper(Package):
    has_code = False
    version("1.0")
""",
}
SITE = """
packages:
  gcc:
    externals:
    - spec: gcc@12.2.0
      prefix: /usr
      extra_attributes: {compilers: {c: /usr/bin/gcc}}
    buildable: false
"""
NO_NETWORK = ("unshare", "--map-root-user", "--net")
ENVIRONMENT = "spack:\n  include: [../common]\n  specs: [tinyio@1.0]\n"
FEATURES = "description: A program\nfeatures:\n  tinyio: [tinyio]\n"


def spack_here() -> dict[str, str]:
    """The variables with which Spack runs here; skips the test where it cannot."""
    program = shutil.which("spack")
    root = os.environ.get("SPACK_ROOT") or (program and str(Path(program).parents[1]))
    if not root or not Path(root, "bin/spack").exists():
        pytest.skip("no Spack: SPACK_ROOT names none, and none is on PATH")
    python = os.environ.get("SPACK_PYTHON", "python3")
    if subprocess.run([python, "-c", "import clingo"], capture_output=True).returncode:
        pytest.skip(f"{python} has no clingo, which Spack would download: SPACK_PYTHON names one")
    if missing := [name for name in ("cc", "git", "gpg", "unshare") if not shutil.which(name)]:
        pytest.skip(f"no {', '.join(missing)} on PATH")
    return {"SPACK_ROOT": root, "SPACK_PYTHON": python}


class SpackWorld:
    """A clone with the environment `tiny`, a site that names it, and where its source lies."""

    def __init__(self, folder: Path) -> None:
        self.variables = spack_here()
        self.upstream = folder / "upstream"
        self.recipes = folder / "recipes"
        self.world = World(folder, copy_clone(folder / "clone"))
        self.world.data.mkdir()
        tiny = self.world.clone / "spack-envs/tiny"
        tiny.mkdir()
        (tiny / "spack.yaml").write_text(ENVIRONMENT)
        (tiny / "features.yaml").write_text(FEATURES)
        # Our recipes build on Spack's own, which are not here.
        shutil.rmtree(self.world.clone / "spack-envs/repo/spack_repo/siteproof/packages")
        (self.world.clone / "spack-envs/repo/spack_repo/siteproof/packages").mkdir()
        self.scope = self.world.site() / "spack"
        (self.scope / "packages.yaml").write_text(SITE)
        old = "  io: {description: 'IOR, mdtest, fio', spack: io}"
        self.world.edit("system", old, "  tiny: {description: A program, spack: tiny}")
        self.publish(PROGRAM)

    def publish(self, program: str) -> None:
        """Pack the program's source, and write the recipes and their release."""
        self.upstream.mkdir(exist_ok=True)
        archive = self.upstream / "tinyio-1.0.tar.gz"
        source = self.upstream / "tinyio-1.0"
        source.mkdir(exist_ok=True)
        (source / "tiny.c").write_text(program)
        with tarfile.open(archive, "w:gz") as file:
            file.add(source, source.name)
        shutil.rmtree(source)
        sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
        builtin = self.recipes / "repos/spack_repo/builtin"
        for name, text in RECIPES.items():
            (builtin / "packages" / name).mkdir(parents=True, exist_ok=True)
            whole = text.replace("{url}", archive.as_uri()).replace("{sha256}", sha256)
            path = builtin / "packages" / name / "package.py"
            path.write_text(f"from spack.package import *\n\n{whole}")
        (builtin / "repo.yaml").write_text("repo: {namespace: builtin, api: v2.2}\n")
        (self.recipes / "spack-repo-index.yaml").write_text(
            "repo_index: {paths: [repos/spack_repo/builtin]}\n"
        )
        self._git("init", "--quiet")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "Recipes")
        self._git("tag", "--force", env_files.versions().packages.tag)

    def _git(self, *words: str) -> None:
        who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        subprocess.run(["git", "-C", str(self.recipes), *who, *words], check=True, timeout=60)

    def fetched(self, data: Path) -> None:
        """Place the recipes where Spack keeps what it has fetched, as if there were a network."""
        kept = data / f"software/packages-{env_files.versions().packages.tag}"
        subprocess.run(["git", "clone", "--quiet", str(self.recipes), str(kept)], check=True)

    def build(self, *words: object, data: Path | None = None, **variables: str) -> Done:
        """`siteproof build WORDS…` with no network and a home that cannot be written."""
        if data:
            data.mkdir(exist_ok=True)
        nowhere = {"HOME": "/proc/self/nowhere", "SITEPROOF_DATA": str(data or self.world.data)}
        command = [*NO_NETWORK, "siteproof", "build", "tiny", "--other-spack"]
        return self.world.run(*command, *words, **(self.variables | nowhere | variables))

    def keys(self, name: str) -> dict[str, str]:
        """The variable with which Spack finds these keys for signatures."""
        folder = self.world.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return {"SPACK_GNUPGHOME": str(folder)}

    def gpg(self, keys: str, *words: str) -> None:
        """`spack gpg WORDS…` with these keys; to a question, the answer is yes."""
        own = {"SPACK_DISABLE_LOCAL_CONFIG": "1"}
        own["SPACK_USER_CACHE_PATH"] = str(self.world.folder / "spack-cache")
        subprocess.run(
            [*NO_NETWORK, f"{self.variables['SPACK_ROOT']}/bin/spack", "gpg", *words],
            env=os.environ | self.variables | self.keys(keys) | own,
            input="y\n",
            text=True,
            check=True,
        )

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The recipe for Spack gives options that meson_options.txt has, with values that they take, for every combination of
its variants. A small stand-in for Spack evaluates it: it cannot show that names of Spack's other packages are right.

Arguments: Meson's command and a build directory, whose options are compared; the version of the project.
"""
import itertools
import json
import subprocess
import sys
import types

from house import ROOT, finish

RECIPE = ROOT / "packaging/spack/package.py"


class Spec:
    def __init__(self, chosen):
        self.chosen = chosen

    def __getitem__(self, name):
        return types.SimpleNamespace(mpicc=f"mpicc of {name}")

    def satisfies(self, text):
        return self.chosen[text[1:]] == (text[0] == "+")


def load():
    """The class, and what its directives say: {directive: [(first argument, keywords), ...]}."""
    said = {}

    def directive(name):
        return lambda first, **how: said.setdefault(name, []).append((first, how))

    spack = types.ModuleType("spack.package")
    for name in ("version", "variant", "depends_on", "conflicts"):
        setattr(spack, name, directive(name))
    spack.MesonPackage = type("MesonPackage", (), {})
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": spack})
    names = {}
    exec(compile(RECIPE.read_text(), str(RECIPE), "exec"), names)
    return names["Scr"], said


def wrong(options, argument):
    name, _, value = argument.removeprefix("-D").partition("=")
    option = options.get(name)
    if not option or not argument.startswith("-D"):
        return f"{argument}: meson_options.txt has no such option"
    allowed = option.get("choices", ["true", "false"])
    bad = [word for word in value.split(",") if word not in allowed]
    return f"{argument}: the option does not take {bad}" if bad else None


def check(options, version):
    recipe, said = load()
    variants = [name for name, _ in said["variant"]]
    known = {sign + name for name in variants for sign in "+~"}
    for directive in ("depends_on", "conflicts"):
        for first, how in said[directive]:
            if how.get("when", "+mpi") not in known:
                yield f"{directive}({first}): no variant {how['when']}"
    if version not in [first for first, _ in said["version"]]:
        yield f"no version {version}"
    given = 0
    for choice in itertools.product((True, False), repeat=len(variants)):
        spec = Spec(dict(zip(variants, choice)))
        if any(spec.satisfies(first) and spec.satisfies(how["when"]) for first, how in said["conflicts"]):
            continue
        package = recipe()
        package.spec = spec
        given += 1
        environment = {}
        package.setup_build_environment(types.SimpleNamespace(set=environment.__setitem__))
        if environment != ({"CC": "mpicc of mpi"} if spec.chosen["mpi"] else {}):
            yield f"{spec.chosen}: another compiler than the wrapper of MPI: {environment}"
        arguments = package.meson_args()
        if "-Dcomponents=" in arguments:
            yield f"{spec.chosen}: no component"
            continue
        yield from filter(None, (wrong(options, argument) for argument in arguments))
        for name in ("mpi", "isal", "fortran", "mariadb"):
            if f"-D{name}={'enabled' if spec.chosen[name] else 'disabled'}" not in arguments:
                yield f"{spec.chosen}: {name} is not passed on"
    if given < 16:
        yield f"only {given} combinations of variants are possible"


if __name__ == "__main__":
    done = subprocess.run([sys.argv[1], "introspect", "--buildoptions", sys.argv[2]], stdout=subprocess.PIPE, check=True)
    finish(sorted(set(check({option["name"]: option for option in json.loads(done.stdout)}, sys.argv[3]))))

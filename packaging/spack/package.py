# SPDX-License-Identifier: BSD-3-Clause
"""Recipe of Spack. In a repository of recipes it is packages/scr/package.py; see docs/administration.md."""
from spack.package import *


class Scr(MesonPackage):
    """Scalable checkpoint / restart for MPI programs: saves checkpoints on the nodes, protects them against the loss of
    nodes, and copies some of them to the parallel file system."""

    version("4.0.0")

    variant("mpi", default=True, description="The SCR calls, and the MPI parts of the libraries")
    variant("tools", default=True, description="Commands that run jobs through failures and manage datasets")
    variant("isal", default=True, description="Checksums and Reed-Solomon redundancy by ISA-L, ten times as fast")
    variant("fortran", default=True, description="The calls for Fortran")
    variant("mariadb", default=False, description="The plugin that logs to a database")

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("zlib-api")
    depends_on("libyaml")
    depends_on("mpi", when="+mpi")
    depends_on("isa-l", when="+isal")
    depends_on("mariadb-c-client", when="+mariadb")

    conflicts("+fortran", when="~mpi", msg="the calls for Fortran need MPI: use ~fortran")
    conflicts("~tools", when="~mpi", msg="without MPI there are only the commands: use +tools")

    def setup_build_environment(self, env):
        # the wrapper tells its MPI; pkg-config would also find another one of the system
        if self.spec.satisfies("+mpi"):
            env.set("CC", self.spec["mpi"].mpicc)

    def meson_args(self):
        components = (["scr-core"] if self.spec.satisfies("+mpi") else []) + (["tools"] if self.spec.satisfies("+tools") else [])

        def feature(name):
            return f"-D{name}={'enabled' if self.spec.satisfies('+' + name) else 'disabled'}"

        return [f"-Dcomponents={','.join(components)}", "-Dtests=false",
                *[feature(name) for name in ("mpi", "isal", "fortran", "mariadb")]]

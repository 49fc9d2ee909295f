"""The group "mpi" of `tensorken.distributed`: `tk.distributed.join("mpi")` joins it."""

from tensorken_mpi.group import MPIGroup

__all__ = ["MPIGroup"]

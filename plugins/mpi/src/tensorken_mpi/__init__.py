"""The group "mpi" of `tensorken.distributed`."""

"""The subcommand `tensorken gpu-report`: the speed of a GPU with this backend, as a report that users can send.

* `cli`: the subcommand; `bench`: the device under test and the clock; `sections`: the measurements in order;
* `transfers`, `products`, `memory_bound`, `trainings`, `laws`: the measurements; `torch_cuda`: the same by torch;
* `text` and `page`: the report as a table and as a page; `units`: numbers with units.
"""

"""The laws on lifetimes: values and memory before, during and after a call."""

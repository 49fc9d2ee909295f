"""`ReduceSum` of int64 adds in float64: the last bits are lost, and large sums saturate, where `Add` wraps."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (int64[] a) => (int64[] y) { y = ReduceSum(a) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
x = np.full(4, 2**53 + 1)
assert session.run(None, {"a": x})[0] == x.sum()

"""`Div` of the smallest integer by -1 ends the process with SIGFPE."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (int32[] a, int32[] b) => (int32[] y) { y = Div(a, b) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
x, y = np.array([-(2**31)], np.int32), np.array([-1], np.int32)
assert session.run(None, {"a": x, "b": y})[0] == -(2**31)

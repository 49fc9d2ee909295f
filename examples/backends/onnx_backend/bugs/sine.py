"""`Sin` and `Cos` of several float64 lose all digits near their zeros between 1 and 13."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (double[] a) => (double[] y) { y = Sin(a) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
assert (session.run(None, {"a": np.full(4, np.pi)})[0] > 1e-16).all()

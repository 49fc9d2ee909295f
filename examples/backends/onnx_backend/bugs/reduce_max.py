"""`ReduceMax` gives NaN only if the first element of a row is NaN."""

import numpy as np
import onnxruntime
from onnx import parser

HEADER = '<ir_version: 10, opset_import: ["" : 22]>'
MODEL = HEADER + "op (float[] a, int64[] axes) => (float[] y) { y = ReduceMax(a, axes) }"
session = onnxruntime.InferenceSession(parser.parse_model(MODEL).SerializeToString())
x = np.array([[np.nan, 1.0], [1.0, np.nan]], np.float32)
assert np.isnan(session.run(None, {"a": x, "axes": np.array([1])})[0]).all()

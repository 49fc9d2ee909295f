"""Layers: modules to build networks from."""

from tensorken_nn.layers.attention import Cache, MultiHeadAttention
from tensorken_nn.layers.batch_norm import BatchNorm, BatchStatistics
from tensorken_nn.layers.convolution import Conv2d, conv2d
from tensorken_nn.layers.dropout import Dropout
from tensorken_nn.layers.embedding import Embedding
from tensorken_nn.layers.flatten import Flatten
from tensorken_nn.layers.linear import Linear
from tensorken_nn.layers.normalization import LayerNorm, RMSNorm
from tensorken_nn.layers.pooling import (
    AvgPool2d,
    GlobalAvgPool2d,
    GlobalMaxPool2d,
    MaxPool2d,
    avg_pool2d,
    max_pool2d,
)
from tensorken_nn.layers.recurrent import GRU, LSTM, RNN, LSTMState
from tensorken_nn.layers.residual import Residual
from tensorken_nn.layers.sequential import Sequential, mlp

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AvgPool2d",
    "BatchNorm",
    "BatchStatistics",
    "Cache",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAvgPool2d",
    "GlobalMaxPool2d",
    "LSTMState",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "MultiHeadAttention",
    "RMSNorm",
    "Residual",
    "Sequential",
    "avg_pool2d",
    "conv2d",
    "max_pool2d",
    "mlp",
]

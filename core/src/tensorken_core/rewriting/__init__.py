"""Interpreters that rewrite ops before another one computes them: fused products, and shapes tracked as views."""

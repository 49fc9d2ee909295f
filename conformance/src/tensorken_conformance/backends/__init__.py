"""Backends: how they are loaded, whether their declarations are valid, and three that are correct."""

"""The commands as data: each declares its arguments, options and result once.

`declaring` reads declarations, `options` holds what every command takes, `rewriting` the commands,
`registry` looks them up and makes functions of them. The command line, the library's functions, the
configuration file and its schema are made of these. Nothing here imports onnx: help is quick.
"""

from __future__ import annotations

"""What the tests and the verification are tested with: instruments that run by themselves.

`generate` makes random models, `soak` runs every command on them, `broken` damages models,
`mutants` seeds faults into rules and outcomes, `outputs` hashes what commands write, `tally`
adds up long runs, `measured_kernels` and `measured_types` measure the installed onnxruntime.
"""

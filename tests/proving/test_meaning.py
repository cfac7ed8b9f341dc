"""Every operator of the table means what the reference executor does: its term is evaluated on
drawn inputs at drawn sizes and compared bit for bit, and where an obligation does not hold the
executor fails."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx.parser
import pytest

from passes.proving.terms.arrays import NotProvable
from tests.proving.meaning import disagreement, drawn

#: The signature and the nodes; opset 21 unless a key tells another one.
OPERATORS = {
    "Add of unknown sizes": "(float[N] x, float[M] y) => (float[K] z) { z = Add (x, y) }",
    "Mul by a column": "(float[N,1] x, float[N,M] y) => (float[N,M] z) { z = Mul (x, y) }",
    "Sub of whole numbers": "(int64[N] x, int64 y) => (int64[N] z) { z = Sub (x, y) }",
    "Mul of whole numbers": "(int64[N] x, int64[N] y) => (int64[N] z) { z = Mul (x, y) }",
    "Neg": "(int64[N] x, float[N] y) => (int64[N] a, float[N] b) { a = Neg (x) b = Neg (y) }",
    "Max": "(int64[N] x, int64 y) => (int64[N] z) { z = Max (x, y) }",
    "Min": "(float[N] x, float[N] y, float[N] w) => (float[N] z) { z = Min (x, y, w) }",
    "Div": """(float[N,M] x) => (int64 z) { s = Shape (x) t = Constant <value_int = 2> ()
        n = Size (x) z = Div (n, t) }""",
    "Mod": """(int64[N] x) => (int64[N] z) { t = Constant <value_int = 3> () z = Mod (x, t) }""",
    "Sigmoid": "(float[N] x) => (float[N] z) { z = Sigmoid (x) }",
    "LeakyRelu": "(float[N] x) => (float[N] z) { z = LeakyRelu (x) }",
    "HardSigmoid": "(float[N] x) => (float[N] z) { z = HardSigmoid <alpha = 0.5> (x) }",
    "PRelu": "(float[N,3] x, float[3] s) => (float[N,3] z) { z = PRelu (x, s) }",
    "Less": "(int64[N] x, int64 y) => (bool[N] z) { z = Less (x, y) }",
    "LessOrEqual": "(int64[N] x, int64 y) => (bool[N] z) { z = LessOrEqual (x, y) }",
    "Greater": "(float[N] x, float[N] y) => (bool[N] z) { z = Greater (x, y) }",
    "GreaterOrEqual": "(int64[N] x, int64[N] y) => (bool[N] z) { z = GreaterOrEqual (x, y) }",
    "Equal": "(int64[N] x, int64 y) => (bool[N] z) { z = Equal (x, y) }",
    "Equal of bools": "(bool[N] x, bool y) => (bool[N] z) { z = Equal (x, y) }",
    "logic": """(bool[N] x, bool[N] y) => (bool[N] a, bool[N] b, bool[N] c) {
        a = And (x, y) o = Or (x, y) b = Not (o) c = Xor (x, y) }""",
    "Where": "(bool[N] c, float[N] x, float y) => (float[N] z) { z = Where (c, x, y) }",
    "Cast of bools": "(bool[N] x) => (int64[N] z) { z = Cast <to = 7> (x) }",
    "Cast to bools": "(int64[N] x) => (bool[N] z) { z = Cast <to = 9> (x) }",
    "Cast there and back": """(float16[N] x) => (float16[N] z) {
        f = Cast <to = 1> (x) z = Cast <to = 10> (f) }""",
    "Cast to whole numbers": "(float[N] x) => (int64[N] z) { z = Cast <to = 7> (x) }",
    "Clip": "(float[N] x, float a, float b) => (float[N] z) { z = Clip (x, a, b) }",
    "Clip of whole numbers": """(int64[N] x, int64 a, int64 b) => (int64[N] z) {
        z = Clip (x, a, b) }""",
    "counts": """(int64[N] x) => (bool a, bool b) {
        z = Constant <value_int = 0> () c = Less (x, z) i = Cast <to = 7> (c)
        n = ReduceSum <keepdims = 0> (i) a = Greater (n, z) b = Equal (n, z) }""",
    "Clip above": "(float[N] x, float b) => (float[N] z) { z = Clip (x, , b) }",
    "ReduceSum": """(float[N,M] x) => (float[N] z) {
        a = Constant <value_ints = [-1]> () z = ReduceSum <keepdims = 0> (x, a) }""",
    "ReduceSum of all": "(float[N,M] x) => (float[1,1] z) { z = ReduceSum (x) }",
    "ReduceMax": """(int64[N,3] x) => (int64[N,1] z) {
        a = Constant <value_ints = [1]> () z = ReduceMax (x, a) }""",
    "ArgMax": "(float[N,3] x) => (int64[N] z) { z = ArgMax <axis = 1, keepdims = 0> (x) }",
    "MatMul": "(float[N,K] x, float[K,M] y) => (float[N,M] z) { z = MatMul (x, y) }",
    "MatMul of a batch": """(float[B,N,2] x, float[2,3] y) => (float[B,N,3] z) {
        z = MatMul (x, y) }""",
    "MatMul of a vector": "(float[K] x, float[K,M] y) => (float[M] z) { z = MatMul (x, y) }",
    "MatMul of unlike sizes": """(float[N,K] x, float[L,M] y) => (float[N,M] z) {
        z = MatMul (x, y) }""",
    "Gemm": """(float[2,N] x, float[3,2] w, float[3] b) => (float[N,3] z) {
        z = Gemm <transA = 1, transB = 1, alpha = 0.5> (x, w, b) }""",
    "Einsum": """(float[N,K] x, float[M,K] y) => (float[M,N] z) {
        z = Einsum <equation = "ik, jk -> ji"> (x, y) }""",
    "Einsum of a batch": """(float[B,N,2] x, float[2] y) => (float[N,B] z) {
        z = Einsum <equation = "bnk,k->nb"> (x, y) }""",
    "Einsum without a sum": """(float[N] x, float[M] y) => (float[M,N] z) {
        z = Einsum <equation = "i,j->ji"> (x, y) }""",
    "Einsum of unlike sizes": """(float[N,K] x, float[L] y) => (float[N] z) {
        z = Einsum <equation = "ik,k->i"> (x, y) }""",
    "Softmax": "(float[N,3] x) => (float[N,3] z) { z = Softmax <axis = 1> (x) }",
    "Hardmax": "(float[N,3] x) => (float[N,3] z) { z = Hardmax (x) }",
    "Shape": "(float[N,2,M] x) => (int64[2] z) { z = Shape <start = 1> (x) }",
    "Range": """(int64 a, int64 b) => (int64[K] z) {
        s = Constant <value_int = 2> () z = Range (a, b, s) }""",
    "Range down": """(int64 a, int64 b) => (int64[K] z) {
        s = Constant <value_int = -2> () z = Range (a, b, s) }""",
    "ConstantOfShape": """(int64[2] s) => (int64[N,M] z) {
        z = ConstantOfShape <value = int64[1] {7}> (s) }""",
    "Gather": "(float[N,2] x, int64[K] i) => (float[K,2] z) { z = Gather (x, i) }",
    "Gather of numbers evenly spaced": """(int64[K] i) => (int64[K] z) {
        x = Constant <value_ints = [5, 2, -1, -4]> () z = Gather (x, i) }""",
    "Gather of numbers evenly spaced modulo 2^64": """(int64[K] i) => (int64[K] z) {
        x = Constant <value_ints = [0, 4611686018427387904, -9223372036854775808]> ()
        z = Gather (x, i) }""",
    "Gather of the least and the largest number": """(int64[K] i) => (int64[K] z) {
        x = Constant <value_ints = [-9223372036854775808, 9223372036854775807]> ()
        z = Gather (x, i) }""",
    "Gather of one": "(float[N,3] x, int64 i) => (float[N] z) { z = Gather <axis = 1> (x, i) }",
    "Slice": """(float[N,3] x, int64[1] a, int64[1] b) => (float[K,3] z) { z = Slice (x, a, b) }""",
    "Slice backwards": """(float[N,3] x) => (float[N,3] z) { a = Constant <value_ints = [-1]> ()
        b = Constant <value_ints = [-9223372036854775808]> () c = Constant <value_ints = [0]> ()
        d = Constant <value_ints = [-1]> () z = Slice (x, a, b, c, d) }""",
    "Slice in steps": """(float[N,5] x) => (float[N,2] z) { a = Constant <value_ints = [1]> ()
        b = Constant <value_ints = [9]> () c = Constant <value_ints = [1]> ()
        d = Constant <value_ints = [2]> () z = Slice (x, a, b, c, d) }""",
    "Concat": "(float[N,2] x, float[M,2] y) => (float[K,2] z) { z = Concat <axis = 0> (x, y) }",
    "Concat of unlike sizes": """(float[2,N] x, float[3,M] y) => (float[5,N] z) {
        z = Concat <axis = 0> (x, y) }""",
    "Split": """(float[N,5] x) => (float[N,2] a, float[N,3] b) {
        s = Constant <value_ints = [2, 3]> () a, b = Split <axis = 1> (x, s) }""",
    "Squeeze": """(float[N,M] x) => (float[M] z) { a = Constant <value_ints = [0]> ()
        z = Squeeze (x, a) }""",
    "Unsqueeze": """(float[N] x) => (float[1,N,1] z) { a = Constant <value_ints = [0, -1]> ()
        z = Unsqueeze (x, a) }""",
    "Expand": "(float[N,1] x, int64[2] s) => (float[K,M] z) { z = Expand (x, s) }",
    "Transpose": "(float[N,2,M] x) => (float[M,N,2] z) { z = Transpose <perm = [2,0,1]> (x) }",
    "Flatten": "(float[N,2,M] x) => (float[N,K] z) { z = Flatten (x) }",
    "Reshape joins": """(float[N,2,3] x) => (float[N,6] z) {
        s = Constant <value_ints = [0, 6]> () z = Reshape (x, s) }""",
    "Reshape splits": """(float[N,6] x) => (float[N,3,2] z) {
        s = Constant <value_ints = [0, 3, -1]> () z = Reshape (x, s) }""",
    "Reshape mixes": """(float[N,4] x) => (float[4,N] z) {
        a = Constant <value_ints = [4]> () t = Shape <end = 1> (x) s = Concat <axis = 0> (a, t)
        z = Reshape <allowzero = 1> (x, s) }""",
    "Reshape that may fail": """(float[N] x) => (float[2,3] z) {
        s = Constant <value_ints = [2, 3]> () z = Reshape (x, s) }""",
    "GatherElements": """(float[N,3] x, int64[M,K] i) => (float[M,K] z) {
        z = GatherElements <axis = -1> (x, i) }""",
    "GatherND of batches": """(float[B,T,2] x, int64[B,K,1] i) => (float[B,K,2] z) {
        z = GatherND <batch_dims = 1> (x, i) }""",
    "GatherND of pairs": """(float[N,3] x, int64[K,2] i) => (float[K] z) {
        z = GatherND (x, i) }""",
    "ScatterND of a row": """(float[N,2] x, int64[1,1] i, float[1,2] u) => (float[N,2] z) {
        z = ScatterND (x, i, u) }""",
    "ScatterND of an element": """(float[N,M] x, int64[2] i, float u) => (float[N,M] z) {
        z = ScatterND (x, i, u) }""",
    "ScatterND of a column": """(float[N,3] x, float[N] u) => (float[N,3] z) {
        d = Shape <end = 1> (x) o = Constant <value_ints = [1]> () s = Concat <axis = 0> (d, o)
        c = ConstantOfShape <value = int64[1] {-2}> (s) a = Constant <value_int = 0> ()
        e = Constant <value_ints = [0]> () n = Squeeze (d, e) w = Constant <value_int = 1> ()
        r = Range (a, n, w) f = Unsqueeze (r, o) i = Concat <axis = 1> (f, c)
        z = ScatterND (x, i, u) }""",
    "ScatterND of later rows": """(float[N,2] x, float[2,2] u) => (float[N,2] z) {
        i = Constant <value = int64[2,1] {1, 2}> () z = ScatterND (x, i, u) }""",
    "ReverseSequence": """(float[T,B] x, int64[B] n) => (float[T,B] z) {
        z = ReverseSequence <time_axis = 0, batch_axis = 1> (x, n) }""",
    "Compress without an axis": """(float[N,2] x) => (float[M] z) {
        n = Size (x) e = Constant <value_ints = [-1]> () s = Reshape (n, e)
        c = ConstantOfShape <value = bool[1] {1}> (s) z = Compress (x, c) }""",
    "Compress to one": """(float[2,N,3] x) => (float[2,1,3] z) {
        a = Constant <value_int = 0> () o = Constant <value_int = 1> () s = Shape (x)
        n = Gather (s, o) r = Range (a, n, o) l = Sub (n, o) c = Equal (r, l)
        z = Compress <axis = 1> (x, c) }""",
    "ArgMax where the last is 0": """(int32[N] x) => (int64[1] z) {
        o = Constant <value = int32[1] {0}> () p = Abs (x) y = Concat <axis = 0> (p, o)
        z = ArgMax <axis = 0> (y) }""",
    "comparisons of small whole numbers": """(int32[N] x, int32 y) => (bool[N] a, bool[N] b) {
        m = Max (x, y) a = Less (x, m) n = Min (x, y) b = Equal (n, x) }""",
    "small whole numbers as large ones": """(int32[N] x, int8 y) => (int64[N] a, int64 b) {
        m = Neg (x) n = Max (x, m) a = Cast <to = 7> (n) b = Cast <to = 7> (y) }""",
    "whole numbers cut off": """(int64[N] x) => (int64[N] y) {
        m = Constant <value_int = 1500000000> () p = Mul (x, m) c = Cast <to = 6> (p)
        y = Cast <to = 7> (c) }""",
    "a count of small numbers": """(bool[N] x) => (int64 y, bool z) {
        c = Cast <to = 6> (x) s = ReduceSum <keepdims = 0> (c) y = Cast <to = 7> (s)
        o = Constant <value = int32 {1}> () z = LessOrEqual (o, s) }""",
    "how many are up to a number": """(int64[N] x, int64 k) => (int64 y, int64 w) {
        a = Constant <value_int = 0> () o = Constant <value_int = 1> () n = Size (x)
        r = Range (a, n, o) c = LessOrEqual (r, k) d = Cast <to = 7> (c)
        y = ReduceSum <keepdims = 0> (d) l = Not (c) m = Cast <to = 6> (l)
        s = ReduceSum <keepdims = 0> (m) w = Cast <to = 7> (s) }""",
    "DepthToSpace": """(float[N,4,M,2] x) => (float[N,1,H,4] z, float[N,1,H,4] y) {
        z = DepthToSpace <blocksize = 2> (x)
        y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }""",
    "DepthToSpace of several channels": """(float[1,8,M,2] x) => (float[1,2,H,4] z,
        float[1,2,H,4] y) {
        z = DepthToSpace <blocksize = 2> (x)
        y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }""",
    "SpaceToDepth": """(float[N,C,4,2] x) => (float[N,D,2,1] z) {
        z = SpaceToDepth <blocksize = 2> (x) }""",
    "SpaceToDepth of unknown sizes": """(float[1,2,H,W] x) => (float[1,8,I,J] z) {
        z = SpaceToDepth <blocksize = 2> (x) }""",
    "EyeLike": """(int32[N,M] x) => (int32[N,M] y, int64[N,M] z) {
        y = EyeLike <k = -1> (x) z = EyeLike <dtype = 7, k = 1> (x) }""",
    "Trilu": """(float[2,N,M] x, int64 k) => (float[2,N,M] y, float[2,N,M] z) {
        y = Trilu (x, k) z = Trilu <upper = 0> (x) }""",
    "CenterCropPad": """(float[N,M] x, float[K,L] y) => (float[K,L] z) {
        s = Shape (y) z = CenterCropPad (x, s) }""",
    "CenterCropPad of the last axis": """(float[N,4] x) => (float[N,3] y, float[N,7] z) {
        a = Constant <value_ints = [3]> () b = Constant <value_ints = [7]> ()
        y = CenterCropPad <axes = [-1]> (x, a) z = CenterCropPad <axes = [1]> (x, b) }""",
    "OneHot": """(float[N] x, float[2] v) => (float[N,3] z) {
        s = Shape (x) a = Constant <value_int = 0> () e = Constant <value_ints = [0]> ()
        n = Squeeze (s, e) o = Constant <value_int = 1> () r = Range (a, n, o)
        b = Constant <value_int = 2> () m = Min (r, b) d = Constant <value_int = 3> ()
        z = OneHot (m, d, v) }""",
    "OneHot from the end": """(bool[N] c, float[2] v) => (float[3,N] z) {
        i = Cast <to = 7> (c) k = Neg (i) d = Constant <value_ints = [3]> ()
        z = OneHot <axis = 0> (k, d, v) }""",
    "Squeeze of all": "(float[1,3,1] x) => (float[3] z) { z = Squeeze (x) }",
    "Split in equal parts": """(float[4,N] x) => (float[2,N] a, float[2,N] b) {
        a, b = Split <num_outputs = 2> (x) }""",
    "bits": """(int32[N] x, int32 y) => (int32[N] a, int32[N] b, int32[N] c) {
        a = BitwiseAnd (x, y) b = BitwiseOr (a, x) c = BitwiseXor (b, y) }""",
    "BitShift": """(uint8[N] x, uint8 y) => (uint8[N] z) {
        z = BitShift <direction = "LEFT"> (x, y) }""",
    "Pad of given widths": """(float[N,2] x, int64[4] p, float f) => (float[M,K] z) {
        z = Pad (x, p, f) }""",
    "Slice of unknown bounds": """(float[N,M] x, int64[2] a, int64[2] b) => (float[K,L] z) {
        z = Slice (x, a, b) }""",
    "Tile": """(float[N,2] x) => (float[M,2] z) { r = Constant <value_ints = [3, 1]> ()
        z = Tile (x, r) }""",
    "Pad": """(float[N,2] x) => (float[M,2] z) { p = Constant <value_ints = [1, 0, 2, 0]> ()
        z = Pad (x, p) }""",
    "Conv": """(float[N,2,K] x, float[3,2,2] w) => (float[N,3,M] z) {
        z = Conv <pads = [1, 0]> (x, w) }""",
    "MaxPool": """(float[N,2,K] x) => (float[N,2,M] z) {
        z = MaxPool <kernel_shape = [2], ceil_mode = 1, strides = [2]> (x) }""",
    "CumSum": "(float[N,2] x, int64 a) => (float[N,2] z) { z = CumSum <reverse = 1> (x, a) }",
    "CumSum of whole numbers": """(int64[N,2] x) => (int64[N,2] z, int64[N,2] y) {
        a = Constant <value_int = -2> () b = Constant <value = int32 {0}> ()
        z = CumSum <exclusive = 1> (x, a) y = CumSum <reverse = 1> (x, b) }""",
    "CumSum of small numbers": """(int32[2,N] x) => (int32[2,N] z) {
        a = Constant <value_int = 1> () z = CumSum <exclusive = 1, reverse = 1> (x, a) }""",
    "TopK": """(float[N,3] x, int64[1] k) => (float[N,M] z, int64[N,M] i) {
        z, i = TopK <largest = 0> (x, k) }""",
    "ScatterND": """(float[N,2] x, int64[M,1] i, float[M,2] u) => (float[N,2] z) {
        z = ScatterND (x, i, u) }""",
    "DequantizeLinear": """(int8[N] x, float s) => (float[N] z) {
        z = DequantizeLinear (x, s) }""",
    "Div of any sign": "(int64[N] x, int64 y) => (int64[N] z) { z = Div (x, y) }",
    "Compress of some": """(float[N] x, bool[M] c) => (float[K] z) {
        z = Compress <axis = 0> (x, c) }""",
    "Pad by a row": """(float[N] x, int64[2] p) => (float[K] z) {
        z = Pad <mode = "edge"> (x, p) }""",
    "Scan": """(float[2] h, float[T,2] x) => (float[2] y, float[T,2] z) {
        y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1],
            body = b (float[2] s, float[2] r) => (float[2] t, float[2] u) {
            t = Sub (r, s) u = Mul (s, r) }> (h, x) }""",
    "Scan of two lengths": """(float[T] x, float[U] y) => (float[T] z) {
        z = Scan <num_scan_inputs = 2, body = b (float a, float c) => (float d) {
            d = Sub (a, c) }> (x, y) }""",
    "Loop": """(int64 n, float[2] h) => (float[2] y, float[K,2] z) {
        y, z = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u) {
            d = Identity (c) f = Cast <to = 1> (i) t = Add (s, f) u = Mul (s, t) }> (n, , h) }""",
    "Scan whose state changes its size": """(float[N] h, float[T,M] x) => (float[N] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[N] s, float[M] r) => (float[K] t) {
            t = Mul (s, r) }> (h, x) }""",
    "Loop whose state grows": """(float[T,2] x, float[N,2] h) => (float[K,2] y) {
        a = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, a)
        y = Loop <body = b (int64 i, bool c, float[L,2] s) => (bool d, float[M,2] t) {
            d = Identity (c) r = Gather (x, i) u = Unsqueeze (r, a)
            t = Concat <axis = 0> (s, u, u) }> (n, , h) }""",
    "Loop whose state of one row grows at the begin": """(float[1] h, int64 n) => (float[K] y) {
        y = Loop <body = b (int64 i, bool c, float[L] s) => (bool d, float[M] t) {
            d = Identity (c) u = Exp (h) w = Neg (s) t = Concat <axis = 0> (u, w) }> (n, , h) }""",
    "Loop of a condition": """(int64 n, float h, float w) => (float y, int64 k) {
        z = Constant <value_int = 0> () one = Constant <value_int = 1> ()
        y, k = Loop <body = b (int64 i, bool c, float s, int64 j) => (bool d, float t, int64 k) {
            t = Add (s, w) d = Less (t, h) k = Add (j, one) }> (n, , h, z) }""",
    "Loop that fills a buffer": """(float[T,2] x, float[T,2] b) => (float[T,2] y) {
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        f = Constant <value_ints = [1,1]> ()
        y = Loop <body = s (int64 i, bool c, float[T,2] a) => (bool g, float[T,2] z) {
            g = Identity (c) r = Gather (x, i) o = Gather (a, i) v = Sub (r, o)
            u = Unsqueeze (v, e) j = Reshape (i, f) z = ScatterND (a, j, u) }> (n, , b) }""",
    "Loop that fills a buffer from its end": """(float[T] x, float[T] b) => (float[T] y) {
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (x) n = Squeeze (d, e)
        f = Constant <value_ints = [1,1]> () w = Constant <value_int = 1> () l = Sub (n, w)
        y = Loop <body = s (int64 i, bool c, float[T] a) => (bool g, float[T] z) {
            g = Identity (c) r = Gather (x, i) u = Unsqueeze (r, e) k = Sub (l, i)
            j = Reshape (k, f) z = ScatterND (a, j, u) }> (l, , b) }""",
    "Loop whose rows are read before they are written": """(float[T] b) => (float[T] y) {
        e = Constant <value_ints = [0]> () d = Shape <end = 1> (b) n = Squeeze (d, e)
        f = Constant <value_ints = [1,1]> () w = Constant <value_int = 1> () l = Sub (n, w)
        y = Loop <body = s (int64 i, bool c, float[T] a) => (bool g, float[T] z) {
            g = Identity (c) k = Add (i, w) r = Gather (a, i) v = Neg (r) u = Unsqueeze (v, e)
            j = Reshape (k, f) z = ScatterND (a, j, u) }> (l, , b) }""",
    "Scan of a window": """(float[3,2] h, float[T,2] x) => (float[3,2] y, float[T,3,2] z) {
        e = Constant <value_ints = [0]> () o = Constant <value_ints = [1]> ()
        m = Constant <value_ints = [9]> ()
        y, z = Scan <num_scan_inputs = 1, body = b (float[3,2] s, float[2] r)
            => (float[3,2] t, float[3,2] u) {
            k = Slice (s, o, m, e) q = Unsqueeze (r, e) t = Concat <axis = 0> (k, q)
            u = Identity (s) }> (h, x) }""",
    "Scan of a window that moves down": """(float[2,N] h, float[T,2] x) => (float[2,N] y) {
        e = Constant <value_ints = [0]> () o = Constant <value_ints = [1]> ()
        l = Constant <value_ints = [-1]> ()
        y = Scan <num_scan_inputs = 1, body = b (float[2,N] s, float[2] r)
            => (float[2,N] t) {
            k = Slice (s, e, l, o) q = Unsqueeze (r, o) t = Concat <axis = 1> (q, k)
            }> (h, x) }""",
    "Loop of a small counter that overflows": """(int64 n, int8 s) => (int8 y, bool[K] z) {
        m = Constant <value = int8 {100}> ()
        y, z = Loop <body = b (int64 i, bool c, int8 a) => (bool d, int8 b, bool e) {
            d = Identity (c) b = Add (a, m) e = Less (a, b) }> (n, , s) }""",
    "Loop of a counter that overflows": """(int64 k, int64 n) => (int64 y) {
        m = Constant <value_int = 9223372036854775807> () s = Add (k, m)
        y = Loop <body = b (int64 i, bool c, int64 a) => (bool d, int64 b) {
            d = Identity (c) b = Add (a, m) }> (n, , s) }""",
    "Loop of a counter": """(float[N] x) => (int64 k) {
        n = Size (x) z = Constant <value_int = 0> () two = Constant <value_int = 2> ()
        go = Less (z, n)
        k = Loop <body = b (int64 i, bool c, int64 j) => (bool d, int64 k) {
            k = Add (j, two) d = Less (k, n) }> ( , go, z) }""",
    "Loop whose body may fail": """(int64 n, float[T,2] x, float[2] h) => (float[2] y) {
        y = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            d = Identity (c) r = Gather (x, i) t = Add (s, r) }> (n, , h) }""",
    "If": """(bool c, float[N] x, float[M] y) => (float[K] z) {
        z = If (c) <then_branch = a () => (float[N] u) { u = Neg (x) },
            else_branch = b () => (float[M] v) { v = Exp (y) }> }""",
    "If in a loop": """(bool[T] c, float h) => (float y) {
        y = Scan <num_scan_inputs = 1, body = b (float s, bool k) => (float t) {
            t = If (k) <then_branch = p () => (float u) { u = Neg (s) },
                else_branch = q () => (float v) { v = Exp (s) }> }> (h, c) }""",
}
CELLS = {
    "RNN": """(float[T,B,3] x, float[1,2,3] w, float[1,2,2] r) => (float[T,1,B,2] y) {
        y = RNN <hidden_size = 2> (x, w, r) }""",
    "RNN of lengths, backwards": """(float[T,B,3] x, float[1,2,3] w, float[1,2,2] r, int32[B] n,
        float[1,B,2] h0) => (float[T,1,B,2] y, float[1,B,2] h) {
        y, h = RNN <hidden_size = 2, direction = "reverse", clip = 1.5> (x, w, r, , n, h0) }""",
    "RNN of both directions": """(float[T,2,2] x, float[2,2,2] w, float[2,2,2] r, float[2,4] b)
        => (float[T,2,2,2] y, float[2,2,2] h) {
        y, h = RNN <direction = "bidirectional", activations = ["LeakyRelu", "Affine"],
            activation_alpha = [0.5, 0.25], activation_beta = [0.125]> (x, w, r, b) }""",
    "GRU": """(float[T,2,2] x, float[1,6,2] w, float[1,6,2] r, float[1,12] b, float[1,2,2] h0)
        => (float[T,1,2,2] y, float[1,2,2] h) {
        y, h = GRU <hidden_size = 2> (x, w, r, b, , h0) }""",
    "GRU that resets the product": """(float[2,T,2] x, float[1,6,2] w, float[1,6,2] r,
        float[1,12] b) => (float[2,T,1,2] y, float[2,1,2] h) {
        y, h = GRU <linear_before_reset = 1, layout = 1, activations = ["HardSigmoid", "Elu"],
            activation_alpha = [0.5, 2], activation_beta = [0.25]> (x, w, r, b) }""",
    "LSTM": """(float[T,B,2] x, float[2,8,2] w, float[2,8,2] r, float[2,16] b, int32[B] n,
        float[2,B,2] h0, float[2,B,2] c0, float[2,6] p)
        => (float[T,2,B,2] y, float[2,B,2] h, float[2,B,2] c) {
        y, h, c = LSTM <direction = "bidirectional"> (x, w, r, b, n, h0, c0, p) }""",
    "LSTM of coupled gates": """(float[T,1,2] x, float[1,8,2] w, float[1,8,2] r, float[1,1,2] c0,
        float[1,6] p) => (float[T,1,1,2] y, float[1,1,2] c) {
        y, h, c = LSTM <input_forget = 1, activations = ["ScaledTanh", "Softsign", "Relu"],
            activation_alpha = [0.5], activation_beta = [2.0]> (x, w, r, , , , c0, p) }""",
    "LSTM of one position": """(float[T,2,1] x, float[1,4,1] w, float[1,4,1] r)
        => (float[T,1,2,1] y, float[1,2,1] h) { y, h = LSTM (x, w, r) }""",
}
OLD_CLIP = """<ir_version: 4, opset_import: ["" : 8]>
    g (float[N] x, float[N] y) => (float[N] z) {
        q = Div (x, y) a = Clip <min = -0.5> (q) b = Clip <max = 1.0> (q) z = Sub (a, b) }"""
SCAN_8 = """<ir_version: 4, opset_import: ["" : 8]>
    g (int64[B] n, float[B,2] h, float[B,T,2] x) => (float[B,2] y, float[B,T,2] z) {
        y, z = Scan <num_scan_inputs = 1, directions = [1],
            body = b (float[2] s, float[2] r) => (float[2] t, float[2] u) {
            t = Sub (r, s) u = Mul (s, r) }> (n, h, x) }"""


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 17), marks=pytest.mark.slow)], ids=["few", "more"]
)
@pytest.mark.parametrize("name", OPERATORS)
def test_means_what_the_executor_does(name: str, seeds: range) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g {OPERATORS[name]}'
    )
    compared = 0
    for seed in seeds:
        with suppress(NotProvable):  # such as a Reshape to -1 beside a size that is 0 here
            assert disagreement(model, drawn(model, seed)) == ""
            compared += 1
    assert compared > len(seeds) / 2


@pytest.mark.parametrize("text", [SCAN_8, OLD_CLIP])
def test_old_operators(text: str) -> None:
    model = onnx.parser.parse_model(text)
    for seed in range(20):
        assert disagreement(model, drawn(model, seed)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_cells_are_their_equations(name: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {CELLS[name]}')
    for seed in range(8):
        feeds = drawn(model, seed)
        if "n" in feeds and seed % 2:  # lengths in range
            feeds["n"] = np.clip(feeds["n"], 0, len(feeds["x"]))
        assert disagreement(model, feeds, written_out=seed == 5) == ""


def test_whole_numbers_beyond_int64_wrap_around() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> g (int64 n) => (int64 y, float z) {
        most = Constant <value_int = 9223372036854775807> ()
        a = Mul (n, most) b = Mul (a, most) y = Abs (b) z = Cast <to = 1> (b) }"""
    )
    for number in (77, -1, 2**62):
        assert disagreement(model, {"n": np.int64(number)}) == ""

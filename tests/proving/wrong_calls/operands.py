"""Calls with another attribute, operand, output or version."""

from __future__ import annotations

from tests.proving.wrong_calls import Case

WINDOWS: dict[str, Case] = {
    "padding at the other side": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,4] x, float[1,1,2] w) => (float[N,1,K] y) {
            y = Conv <auto_pad = "SAME_UPPER"> (x, w) }""",
        {"UPPER": "LOWER"},
        {"x": [[[1, 2, 3, 4]]], "w": [[[1, 2]]]},
    ),
    "a dilation against its default": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,4] x, float[1,1,2] w) => (float[N,1,K] y) {
            a = Conv (x, w)  y = Relu (a) }""",
        {"Conv": "Conv <dilations = [2]>"},
        {"x": [[[1, 2, 3, 4]]], "w": [[[1, 2]]]},
    ),
    "the stride of a transposed convolution": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,3] x, float[1,1,2] w) => (float[N,1,K] y) {
            y = ConvTranspose <output_padding = [0], pads = [1, 0]> (x, w) }""",
        {"[1, 0]": "[0, 1]"},
        {"x": [[[1, 2, 3]]], "w": [[[1, 2]]]},
    ),
    "a pool that counts what is padded": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,3] x) => (float[N,1,K] y) {
            y = AveragePool <kernel_shape = [2], pads = [1, 1]> (x) }""",
        {"AveragePool <": "AveragePool <count_include_pad = 1, "},
        {"x": [[[1, 2, 3]]]},
    ),
    "a pool that rounds up": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,4] x) => (float z) {
            y = MaxPool <kernel_shape = [3], strides = [2]> (x)
            z = ReduceSum <keepdims = 0> (y) }""",
        {"MaxPool <": "MaxPool <ceil_mode = 1, "},
        {"x": [[[1, 2, 3, 4]]]},
    ),
    "the other global pool": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,3] x) => (float[N,1,1] y) { y = GlobalMaxPool (x) }""",
        {"Max": "Average"},
        {"x": [[[1, 2, 3]]]},
    ),
    "a norm that is not the default one": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,1,4] x) => (float[N,1,K] y) { y = LpPool <kernel_shape = [2]> (x) }""",
        {"LpPool <": "LpPool <p = 1, "},
        {"x": [[[1, 2, 3, 4]]]},
    ),
    "a convolution of channels that may not fit": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,C,L] x, float[1,1,1] w) => (float[N,C,L] y) { y = Neg (x) }""",
        {"y = Neg": "unread = Conv (x, w)  y = Neg"},
        {"x": [[[1], [2]]], "w": [[[1]]]},
    ),
    "neighbours that are rounded otherwise": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,4] x) => (float[1,1,K] y) <float[3] by = {1, 1, 2}> {
            y = Resize <nearest_mode = "floor"> (x, , by) }""",
        {' <nearest_mode = "floor">': ""},
        {"x": [[[1, 2, 3, 4]]]},
    ),
    "coordinates that are not the default ones": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,4] x, int64[3] to) => (float[A,B,C] y) {
            y = Resize <mode = "linear"> (x, , , to) }""",
        {'"linear"': '"linear", coordinate_transformation_mode = "align_corners"'},
        {"x": [[[1, 2, 3, 4]]], "to": [1, 1, 3]},
    ),
    "a size that Resize decides": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,4] x, float[3] by, int64[3] to) => (int64[3] y) {
            a = Resize (x, , by)  b = Resize (x, , , to)  y = Shape (a) }""",
        {"Shape (a)": "Shape (b)"},
        {"x": [[[1, 2, 3, 4]]], "by": [1, 1, 2], "to": [1, 1, 3]},
    ),
    "Resize of opset 10, which is asymmetric": (
        """<ir_version: 10, opset_import: ["" : 10]>
        g (float[1,1,4] x, float[3] by) => (float[A,B,C] y) {
            y = Resize <mode = "linear"> (x, by) }""",
        """<ir_version: 10, opset_import: ["" : 11]>
        g (float[1,1,4] x, float[3] by) => (float[A,B,C] y) {
            none = Constant <value = float[0] {}> ()
            y = Resize <mode = "linear"> (x, none, by) }""",
        {"x": [[[1, 2, 3, 4]]], "by": [1, 1, 2]},
    ),
    "Upsample, which is asymmetric": (
        """<ir_version: 10, opset_import: ["" : 9]>
        g (float[1,1,2] x, float[3] by) => (float[A,B,C] y) {
            y = Upsample <mode = "linear"> (x, by) }""",
        """<ir_version: 10, opset_import: ["" : 13]>
        g (float[1,1,2] x, float[3] by) => (float[A,B,C] y) {
            y = Resize <mode = "linear"> (x, , by) }""",
        {"x": [[[1, 2]]], "by": [1, 1, 2]},
    ),
    "a region of interest of another opset": (
        """<ir_version: 10, opset_import: ["" : 15]>
        g (float[1,1,4,4] x, float[R,4] boxes, int64[R] batch) => (float[R,1,1,1] y) {
            y = RoiAlign <output_height = 1, output_width = 1> (x, boxes, batch) }""",
        {": 15": ": 16"},
        {
            "x": [[[[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [4, 3, 2, 1]]]],
            "boxes": [[0, 1, 2, 3]],
            "batch": [0],
        },
    ),
    "a region that takes the most": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,4,4] x, float[R,4] boxes, int64[R] batch) => (float[R,1,1,1] y) {
            y = RoiAlign <output_height = 1, output_width = 1> (x, boxes, batch) }""",
        {"RoiAlign <": 'RoiAlign <mode = "max", '},
        {
            "x": [[[[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [4, 3, 2, 1]]]],
            "boxes": [[0, 1, 2, 3]],
            "batch": [0],
        },
    ),
    "a sample beyond the border": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,1,2,2] x, float[1,1,1,2] at) => (float[1,1,1,1] y) {
            y = GridSample (x, at) }""",
        {"GridSample": 'GridSample <padding_mode = "border">'},
        {"x": [[[[1, 2], [3, 4]]]], "at": [[[[2, 2]]]]},
    ),
}

NORMALISED: dict[str, Case] = {
    "the mean for the variance": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,2] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[N,2] y) {
            y = BatchNormalization (x, s, b, m, v) }""",
        {"(x, s, b, m, v)": "(x, s, b, v, m)"},
        {"x": [[1, 2]], "s": [1, 1], "b": [0, 0], "m": [1, 2], "v": [3, 4]},
    ),
    "the statistics of the batch": (
        """<ir_version: 10, opset_import: ["" : 15]>
        g (float[N,2] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[N,2] y) {
            y, c, d = BatchNormalization <training_mode = 1> (x, s, b, m, v) }""",
        {"y, c, d": "y", " <training_mode = 1>": ""},
        {"x": [[1, 2], [3, 5]], "s": [1, 1], "b": [0, 0], "m": [1, 2], "v": [3, 4]},
    ),
    "a running mean of another momentum": (
        """<ir_version: 10, opset_import: ["" : 15]>
        g (float[N,2] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[2] y) {
            c, y, d = BatchNormalization <training_mode = 1> (x, s, b, m, v) }""",
        {"training_mode": "momentum = 0.5, training_mode"},
        {"x": [[1, 2], [3, 5]], "s": [1, 1], "b": [0, 0], "m": [1, 2], "v": [3, 4]},
    ),
    "an epsilon against its default": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,2,3] x, float[2] s, float[2] b) => (float[N,2,3] y) {
            y = InstanceNormalization (x, s, b) }""",
        {"InstanceNormalization": "InstanceNormalization <epsilon = 1.0>"},
        {"x": [[[1, 2, 3], [3, 5, 8]]], "s": [1, 1], "b": [0, 0]},
    ),
    "a bias for a scale": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,2,3] x, float[2] s, float[2] b) => (float[N,2,3] y) {
            y = InstanceNormalization (x, s, b) }""",
        {"(x, s, b)": "(x, b, s)"},
        {"x": [[[1, 2, 3], [3, 5, 8]]], "s": [1, 1], "b": [0, 0]},
    ),
    "the bias of a local response": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,3,1,2] x) => (float[N,3,1,2] y) { y = LRN <size = 3> (x) }""",
        {"size = 3": "size = 3, bias = 2.0"},
        {"x": [[[[1, 2]], [[3, 4]], [[5, 6]]]]},
    ),
    "the mean for its spread": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,3] x, float[3] s) => (float[N,1] y) {
            a, mean, spread = LayerNormalization (x, s)  y = Identity (mean) }""",
        {"(mean)": "(spread)"},
        {"x": [[1, 2, 6]], "s": [1, 1, 1]},
    ),
    "an axis of Softmax that was a block of axes": (
        """<ir_version: 10, opset_import: ["" : 11]>
        g (float[N,2,2] x) => (float[N,2,2] y) { y = Hardmax (x) }""",
        {": 11": ": 13"},
        {"x": [[[1, 2], [3, 4]]]},
    ),
    "a loss that adds up": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,3] x, int64[N] k) => (float y) { y = SoftmaxCrossEntropyLoss (x, k) }""",
        {"Loss": 'Loss <reduction = "sum">'},
        {"x": [[1, 2, 3], [3, 2, 1]], "k": [0, 1]},
    ),
    "quantised along another axis": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2] x, float[2] s) => (uint8[2,2] y) {
            z = Constant <value = uint8[2] {0, 0}> ()  y = QuantizeLinear (x, s, z) }""",
        {"QuantizeLinear": "QuantizeLinear <axis = 0>"},
        {"x": [[1, 2], [3, 4]], "s": [1, 2]},
    ),
    "a zero point that is left out": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (uint8[N] x, float s, uint8 z) => (float[N] y) { y = DequantizeLinear (x, s, z) }""",
        {"s, z) }": "s) }"},
        {"x": [1, 2], "s": 2, "z": 1},
    ),
    "the scale of another call": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float[N] w) => (float[N] y) {
            a, s, z = DynamicQuantizeLinear (x)  b, t, u = DynamicQuantizeLinear (w)
            y = DequantizeLinear (a, s, z) }""",
        {"(a, s, z)": "(a, t, z)"},
        {"x": [1, 2], "w": [3, 7]},
    ),
    "the zero point of the other operand": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (uint8[N,2] x, uint8[2,M] w, uint8 z) => (int32[N,M] y) {
            y = MatMulInteger (x, w, z) }""",
        {"(x, w, z)": "(x, w, , z)"},
        {"x": [[1, 2]], "w": [[3], [4]], "z": 1},
    ),
}

CHOSEN: dict[str, Case] = {
    "the smallest ones": (
        """<ir_version: 10, opset_import: ["" : 11]>
        g (float[N,3] x, int64[1] k) => (float[N,K] y) { y, i = TopK (x, k) }""",
        {"TopK": "TopK <largest = 0>"},
        {"x": [[1, 2, 3]], "k": [1]},
    ),
    "the largest ones of another axis": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[3,3] x, int64[1] k) => (float s) {
            y, i = TopK (x, k)  s = ReduceSum <keepdims = 0> (y) }""",
        {"TopK": "TopK <axis = 0>"},
        {"x": [[1, 2, 3], [4, 5, 6], [7, 8, 9]], "k": [1]},
    ),
    "a number of largest ones that was an attribute": (
        """<ir_version: 10, opset_import: ["" : 9]>
        g (float[N,3] x) => (float[N,K] y) { y, i = TopK <k = 1> (x) }""",
        """<ir_version: 10, opset_import: ["" : 10]>
        g (float[N,3] x) => (float[N,K] y) {
            k = Constant <value = int64[1] {2}> ()  y, i = TopK (x, k) }""",
        {"x": [[1, 2, 3]]},
    ),
    "how many of the largest ones": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[1] k) => (int64[1] n) { y, i = TopK (x, k)  n = Shape (y) }""",
        {"Shape (y)": "Shape (x)"},
        {"x": [1, 2, 3], "k": [1]},
    ),
    "how many are not zero": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (int64 n) { i = NonZero (x)  n = Size (i) }""",
        {"Size (i)": "Size (x)"},
        {"x": [1, 0, 3]},
    ),
    "which are not zero, read as which rows are": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2] x) => (int64[2,K] i) { i = NonZero (x) }""",
        {"i = NonZero (x)": "t = Transpose (x)  i = NonZero (t)"},
        {"x": [[0, 1], [0, 0]]},
    ),
    "whole numbers in the order in which they come": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64[N] x) => (int64[K] y) { y = Unique (x) }""",
        {"Unique": "Unique <sorted = 0>"},
        {"x": [3, 0]},
    ),
    "numbers in the order in which they come": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[K] y) { y = Unique (x) }""",
        {"Unique": "Unique <sorted = 0>"},
        {"x": [2, 1, 2]},
    ),
    "how often each comes, for where it is": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (int64[K] y) { a, i, j, y = Unique (x) }""",
        {"a, i, j, y": "a, y, j, i"},
        {"x": [2, 1, 2]},
    ),
    "outputs that are left out": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (int64[K] y) { a, , y = Unique (x) }""",
        {"a, , y": "a, y"},
        {"x": [2, 1, 2]},
    ),
    "elements of all rows for rows": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2] x, bool[2] c) => (float s) {
            y = Compress <axis = 0> (x, c)  s = ReduceSum <keepdims = 0> (y) }""",
        {" <axis = 0>": ""},
        {"x": [[1, 2], [3, 4]], "c": [True, False]},
    ),
    "scattered along another axis": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2] x, int64[2,2] i, float[2,2] u) => (float[2,2] y) {
            y = ScatterElements (x, i, u) }""",
        {"Elements": "Elements <axis = 1>"},
        {"x": [[0, 0], [0, 0]], "i": [[0, 1], [1, 0]], "u": [[1, 2], [3, 4]]},
    ),
    "added where it was put": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,2] x, int64[K,1] i, float[K,2] u) => (float[N,2] y) {
            y = ScatterND (x, i, u) }""",
        {"ScatterND": 'ScatterND <reduction = "add">'},
        {"x": [[1, 2]], "i": [[0]], "u": [[1, 1]]},
    ),
    "two scatters in the other order": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, int64[K,1] i, float[K] u, float[K] v) => (float[N] y) {
            a = ScatterND (x, i, u)  y = ScatterND (a, i, v) }""",
        {"(x, i, u)": "(x, i, v)", "(a, i, v)": "(a, i, u)"},
        {"x": [1, 2], "i": [[0]], "u": [3], "v": [4]},
    ),
    "a batch of gathered rows": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2,2] x, int64[2,1] i) => (float s) {
            y = GatherND (x, i)  s = ReduceSum <keepdims = 0> (y) }""",
        {"GatherND": "GatherND <batch_dims = 1>"},
        {"x": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "i": [[0], [1]]},
    ),
    "a one of another axis": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64[2] i, float[2] v) => (float[2,2] y) {
            n = Constant <value_int = 2> ()  y = OneHot (i, n, v) }""",
        {"OneHot": "OneHot <axis = 0>"},
        {"i": [0, 0], "v": [0, 1]},
    ),
    "an equation of the transpose": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[A,2] x, float[2,2] w) => (float[A,2] y) {
            y = Einsum <equation = "ij,jk->ik"> (x, w) }""",
        {"ij,jk": "ij,kj"},
        {"x": [[1, 2]], "w": [[1, 2], [3, 4]]},
    ),
    "sums without the element itself": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) {
            a = Constant <value_int = 0> ()  y = CumSum (x, a) }""",
        {"CumSum": "CumSum <exclusive = 1>"},
        {"x": [1, 2]},
    ),
    "boxes by their centres": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1,N,4] b, float[1,1,N] s, int64[1] k, float[1] t) => (int64[K,3] y) {
            y = NonMaxSuppression (b, s, k, t) }""",
        {"Suppression": "Suppression <center_point_box = 1>"},
        {
            "b": [[[0, 0, 1, 1], [0.2, 0.2, 3, 3]]],
            "s": [[[0.9, 0.8]]],
            "k": [2],
            "t": [0.1],
        },
    ),
    "sequences that are reversed along time": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,2] x, int64[2] n) => (float[2,2] y) {
            y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, n) }""",
        {"batch_axis = 0, time_axis = 1": "batch_axis = 1, time_axis = 0"},
        {"x": [[1, 2], [3, 4]], "n": [2, 2]},
    ),
    "the last one of the largest": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (int64 i) { i = ArgMax <keepdims = 0> (x) }""",
        {"<keepdims": "<select_last_index = 1, keepdims"},
        {"x": [1, 1]},
    ),
    "a window that does not repeat": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64 n) => (float[K] y) { y = HannWindow (n) }""",
        {"HannWindow": "HannWindow <periodic = 0>"},
        {"n": 4},
    ),
    "a Pad that may cut off what it adds": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) {
            p = Constant <value = int64[2] {-2, 1}> ()  unread = Pad (x, p)  y = Neg (x) }""",
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) {
            i = Constant <value_int = 1> ()  unread = Gather (x, i)  y = Neg (x) }""",
        {"x": [1]},
    ),
    "a OneHot of depth 0": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64[0] i, float[2] v) => (float[2] y) { y = Neg (v) }""",
        {"y =": "d = Constant <value_int = 0> ()  unread = OneHot (i, d, v)  y ="},
        {"i": [], "v": [1, 2]},
    ),
}

DRAWN: dict[str, Case] = {
    "a dropout in training": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x, float r, bool t) => (float[N] y) { y = Dropout <seed = 1> (x, r) }""",
        {"(x, r)": "(x, r, t)"},
        {"x": [1, 1, 1, 1], "r": 0.5, "t": True},
    ),
    "numbers of another mean": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) { y = RandomNormalLike <seed = 1.0> (x) }""",
        {"seed": "mean = 100.0, seed"},
        {"x": [1, 2]},
    ),
    "numbers of another seed": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float x) => (float[2] y) {
            r = RandomUniform <shape = [2], seed = 1.0> ()  y = Add (x, r) }""",
        {"1.0": "2.0"},
        {"x": 1},
    ),
}

LEARNED: dict[str, Case] = {
    "a column that is read": (
        """<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        g (float[N,3] x, int64[1] i, int64[1] j) => (float[N,1] y) {
            y = ai.onnx.ml.ArrayFeatureExtractor (x, i) }""",
        {"(x, i)": "(x, j)"},
        {"x": [[1, 2, 3]], "i": [0], "j": [1]},
    ),
    "an offset for a scale": (
        """<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        g (float[N,2] x) => (float[N,2] y) {
            y = ai.onnx.ml.Scaler <offset = [1.0, 2.0], scale = [3.0, 4.0]> (x) }""",
        {"offset": "scale", "scale": "offset"},
        {"x": [[1, 2]]},
    ),
    "a threshold that is reached": (
        """<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        g (float[N,1] x) => (float[N,1] y) {
            y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0],
                nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0],
                nodes_values = [1.0, 0.0, 0.0],
                nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0],
                target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0],
                target_weights = [5.0, 7.0]> (x) }""",
        {"BRANCH_LEQ": "BRANCH_LT"},
        {"x": [[1]]},
    ),
    "scores that are made probabilities": (
        """<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        g (float[N,2] x) => (float[N,2] y) {
            k, y = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 2.0, 3.0, 4.0],
                intercepts = [0.0, 0.0], classlabels_ints = [0, 1]> (x) }""",
        {"classlabels": 'post_transform = "SOFTMAX", classlabels'},
        {"x": [[1, 2]]},
    ),
    "a label of what is unknown": (
        """<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        g (int64[N] x) => (int64[N] y) {
            y = ai.onnx.ml.LabelEncoder <keys_int64s = [1], values_int64s = [2]> (x) }""",
        {"keys": "default_int64 = 3, keys"},
        {"x": [5]},
    ),
    "words in lower case": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (string[N] x) => (string[K] y) {
            y = StringNormalizer <case_change_action = "LOWER"> (x) }""",
        {"LOWER": "UPPER"},
        {"x": ["Ab", "c"]},
    ),
    "words that are weighted": (
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64[N] x) => (float[K] y) {
            y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1,
                max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0, 1],
                pool_int64s = [2, 3], weights = [5.0, 7.0]> (x) }""",
        {'"TF"': '"TFIDF"'},
        {"x": [2, 3, 3]},
    ),
}

OPERANDS = {**WINDOWS, **NORMALISED, **CHOSEN, **DRAWN, **LEARNED}

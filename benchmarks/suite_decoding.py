"""Decoders: attention, the tags of a sequence, beam search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.suite import Case, drawn, model


def cases(quick: bool) -> Iterator[Case]:
    """Loops as an exporter writes them: rows read by the iteration number, projections inside."""
    yield _attention(2, 3, 5, 4, 6) if quick else _attention(4, 32, 64, 256, 2_000)
    yield _viterbi(2, 4, 3, 5) if quick else _viterbi(8, 128, 24, 256)
    yield _crf(2, 4, 3, 5) if quick else _crf(8, 128, 24, 256)
    yield _beam(3, 4, 5, 4, 6) if quick else _beam(5, 32, 64, 256, 2_000)


def _attention(batch: int, steps: int, places: int, width: int, words: int) -> Case:
    """The words of a sentence given (as in scoring), the keys projected in every iteration."""
    attend = """p1 = Add (p, b_)  h1 = Tanh (p1)  one = Constant <value_ints = [1]> ()
        q = Unsqueeze (h1, one)  s = MatMul (q, kt)  w = Softmax <axis = -1> (s)
        c1 = MatMul (w, memory)  c = Squeeze (c1, one)  hc = Concat <axis = -1> (h1, c)
        o = MatMul (hc, Wc)  h_out = Tanh (o)"""
    keys = "k = MatMul (memory, Wk)  kt = Transpose <perm = [0, 2, 1]> (k)"
    words_of = "l = MatMul ({0}, Wo)  lb = Add (l, bo)  {1} = LogSoftmax <axis = -1> (lb)"
    state, row = f"float[B,{width}]", f"float[B,{words}]"
    head = f"""decoder (float[T,B,{width}] x, {state} h0, float[B,S,{width}] memory)
        => ({state} h, float[T,B,{words}] y)"""
    original = f"""{head} {{ shape = Shape <start = 0, end = 1> (x)
        zero = Constant <value_ints = [0]> ()  trips = Squeeze (shape, zero)
        yes = Constant <value = bool {{1}}> ()
        h, y = Loop <body = step (int64 now, bool go, {state} h_in)
            => (bool on, {state} h_out, {row} y_t) {{
            on = Identity (go)  x_t = Gather (x, now)  p = MatMul (x_t, Wx)
            b_ = MatMul (h_in, R)  {keys}  {attend}  {words_of.format("h_out", "y_t")}
        }}> (trips, yes, h0) }}"""
    by_hand = f"""{head} {{ xp = MatMul (x, Wx)  {keys}
        h, hs = Scan <num_scan_inputs = 1, body = step ({state} h_in, {state} p)
            => ({state} h_out, {state} h_all) {{
            b_ = MatMul (h_in, R)  {attend}  h_all = Identity (h_out) }}> (h0, xp)
        {words_of.format("hs", "y")} }}"""
    square = (width, width)
    weights = drawn(
        0, Wx=square, R=square, Wk=square, Wc=(2 * width, width), Wo=(width, words), bo=(words,)
    )
    feeds = drawn(1, x=(steps, batch, width), h0=(batch, width), memory=(batch, places, width))
    return Case("attention decoder", model(original, weights), feeds, model(by_hand, weights))


def _viterbi(batch: int, steps: int, tags: int, width: int) -> Case:
    """The best tags: a Loop to the end, and one back to the start along what it found."""
    state, back = f"float[B,{tags}]", f"int64[B,{tags}]"
    head = f"viterbi (float[T,B,{width}] x, {state} s0) => ({state} s, int64[T,B,1] y)"
    ends = """shape = Shape <start = 0, end = 1> (x)
        zero = Constant <value_ints = [0]> ()  trips = Squeeze (shape, zero)
        yes = Constant <value = bool {1}> ()"""
    best = """two = Constant <value_ints = [2]> ()  column = Unsqueeze (s_in, two)
        all = Add (column, trans)  most = ReduceMax <axes = [1], keepdims = 0> (all)
        from_t = ArgMax <axis = 1, keepdims = 0> (all)  s_out = Add (most, e)"""
    last = "y0 = ArgMax <axis = 1, keepdims = 1> (s)"
    original = f"""{head} {{ {ends}
        s, from = Loop <body = step (int64 now, bool go, {state} s_in)
            => (bool on, {state} s_out, {back} from_t) {{
            on = Identity (go)  x_t = Gather (x, now)  e0 = MatMul (x_t, W)  e = Add (e0, b)
            {best} }}> (trips, yes, s0)
        {last}
        end, back = Loop <body = trace (int64 at, bool go_, int64[B,1] tag)
            => (bool on_, int64[B,1] next, int64[B,1] tag_t) {{
            on_ = Identity (go_)  one = Constant <value = int64 {{1}}> ()
            left = Sub (trips, at)  place = Sub (left, one)  f_t = Gather (from, place)
            next = GatherElements <axis = 1> (f_t, tag)  tag_t = Identity (tag)
        }}> (trips, yes, y0)
        minus = Constant <value_ints = [-1]> ()  least = Constant <value_ints = [-1000000]> ()
        y = Slice (back, minus, least, zero, minus) }}"""
    by_hand = f"""{head} {{ e0 = MatMul (x, W)  es = Add (e0, b)
        s, from = Scan <num_scan_inputs = 1, body = step ({state} s_in, {state} e)
            => ({state} s_out, {back} from_t) {{ {best} }}> (s0, es)
        {last}
        end, y = Scan <num_scan_inputs = 1, scan_input_directions = [1],
            scan_output_directions = [1], body = trace (int64[B,1] tag, {back} f_t)
            => (int64[B,1] next, int64[B,1] tag_t) {{
            next = GatherElements <axis = 1> (f_t, tag)  tag_t = Identity (tag) }}> (y0, from) }}"""
    weights = drawn(0, W=(width, tags), b=(tags,), trans=(tags, tags))
    feeds = drawn(1, x=(steps, batch, width), s0=(batch, tags))
    return Case("Viterbi", model(original, weights, 15), feeds, model(by_hand, weights, 15))


def _crf(batch: int, steps: int, tags: int, width: int) -> Case:
    """The partition function, rows of different lengths: a step that is masked keeps the state."""
    state = f"float[B,{tags}]"
    head = f"crf (float[T,B,{width}] x, bool[T,B,1] mask, {state} s0) => (float[B] z)"
    step = """two = Constant <value_ints = [2]> ()  column = Unsqueeze (s_in, two)
        all = Add (column, trans)  sum = ReduceLogSumExp <axes = [1], keepdims = 0> (all)
        new = Add (sum, e)  s_out = Where (m, new, s_in)"""
    end = "z = ReduceLogSumExp <axes = [1], keepdims = 0> (s)"
    original = f"""{head} {{
        s, unread = Scan <num_scan_inputs = 2, body = step
            ({state} s_in, float[B,{width}] x_t, bool[B,1] m) => ({state} s_out, {state} s_t) {{
            e0 = MatMul (x_t, W)  e = Add (e0, b)  {step}  s_t = Identity (s_out)
        }}> (s0, x, mask)  {end} }}"""
    by_hand = f"""{head} {{ e0 = MatMul (x, W)  es = Add (e0, b)
        s = Scan <num_scan_inputs = 2, body = step
            ({state} s_in, {state} e, bool[B,1] m) => ({state} s_out) {{ {step} }}> (s0, es, mask)
        {end} }}"""
    weights = drawn(0, W=(width, tags), b=(tags,), trans=(tags, tags))
    lengths = np.linspace(steps, steps // 2, batch).astype(np.int64)
    mask = (np.arange(steps)[:, None] < lengths)[:, :, None]
    feeds = {**drawn(1, x=(steps, batch, width), s0=(batch, tags)), "mask": mask}
    return Case("CRF", model(original, weights, 15), feeds, model(by_hand, weights, 15))


def _beam(beams: int, steps: int, places: int, width: int, words: int) -> Case:
    """Each step picks the best words of all beams: what is read of the input is the same."""
    state, column, picked = f"float[{beams},{width}]", f"float[{beams},1]", f"int64[{beams}]"
    keys = "k = MatMul (memory, Wk)  kt = Transpose <perm = [1, 0]> (k)  v = MatMul (memory, Wv)"
    step = f"""on = Identity (go)  e = Gather (E, word)  p = MatMul (e, Wx)
        r = MatMul (h_in, R)  pr = Add (p, r)  h1 = Tanh (pr)
        s = MatMul (h1, kt)  w = Softmax <axis = -1> (s)  c = MatMul (w, v)  h2 = Add (h1, c)
        l = MatMul (h2, Wo)  lp = LogSoftmax <axis = -1> (l)  sums = Add (score, lp)
        minus = Constant <value_ints = [-1]> ()  flat = Reshape (sums, minus)
        many = Constant <value_ints = [{beams}]> ()  count = Constant <value = int64 {{{words}}}> ()
        top, at = TopK (flat, many)  from = Div (at, count)  word_out = Mod (at, count)
        score_out = Unsqueeze (top, minus)  h_out = Gather (h2, from)
        word_t = Identity (word_out)  from_t = Identity (from)"""
    head = f"""beam ({state} h0, {picked} word0, {column} score0, float[S,{width}] memory)
        => ({column} score_T, int64[T,{beams}] y, int64[T,{beams}] parents)"""

    def loop(front: str, inside: str) -> str:
        return f"""{head} {{ trips = Constant <value = int64 {{{steps}}}> ()
            yes = Constant <value = bool {{1}}> ()  {front}
            hT, wT, score_T, y, parents = Loop <body = step (int64 now, bool go, {state} h_in,
                {picked} word, {column} score) => (bool on, {state} h_out,
                {picked} word_out, {column} score_out, {picked} word_t, {picked} from_t) {{
                {inside} {step} }}>
                (trips, yes, h0, word0, score0) }}"""

    square = (width, width)
    weights = drawn(
        0, E=(words, width), Wx=square, R=square, Wk=square, Wv=square, Wo=(width, words)
    )
    feeds = {
        **drawn(1, h0=(beams, width), score0=(beams, 1), memory=(places, width)),
        "word0": np.arange(beams, dtype=np.int64),
    }
    return Case(
        "beam search", model(loop("", keys), weights), feeds, model(loop(keys, ""), weights)
    )

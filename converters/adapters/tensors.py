"""Steps of ops that make tensors or change their type."""

from __future__ import annotations

from converters.steps import identical

identical("Cast", 9)  # strings are new; what is said of numbers was so before
identical("Cast", 13)
identical("Cast", 19, because="saturate is new and only bears on the new float8 types")
identical("Cast", 21, 23)
identical(
    "Cast",
    24,
    because="round_mode is for the new float8e8m0; that an infinity saturates in the FNUZ types "
    "too, which the table of version 19 has as NaN, is how it always ran",
)
identical("Cast", 25, 28)

identical("CastLike", 19, because="saturate is new and only bears on the new float8 types")
identical("CastLike", 21, 23)
identical("CastLike", 24, because="round_mode is for the new float8e8m0; see Cast")
identical("CastLike", 25)

identical("Constant", 9)
identical("Constant", 11, because="value is optional now that there is sparse_value")
identical("Constant", 12, because="the attributes value_* are new")
identical("Constant", 13, 19, 21, 23, 24, 25)
identical("ConstantOfShape", 20, 21, 23, 24, 25)
identical("EyeLike", 22)
identical("Range", 27, because="stash_type only bears on the new types float16 and bfloat16")

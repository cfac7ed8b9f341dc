"""Models of scikit-learn by way of skl2onnx; neighbours and Gaussian processes hold a Scan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from case import Case, draw
from onnx import ModelProto
from skl2onnx import to_onnx
from skl2onnx.common._topology import Variable
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from skl2onnx.common.utils import _unique_index
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern, WhiteKernel
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    LocalOutlierFactor,
    NearestNeighbors,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR

X = draw(0, 24, 3)
KIND = (X[:, 0] + X[:, 1] > 0).astype(np.int64) + (X[:, 2] > 0.8)
NAMES = np.array(["low", "mid", "top"])[KIND]
TARGET = X[:, 0] * 2 - X[:, 1] * X[:, 2]
FRESH = draw(1, 5, 3)
EVERY = tuple(range(9, 19))
FEW = (9, 11, 13, 15, 17, 18)
#: Which ai.onnx.ml goes with an opset.
ML = {9: 1, **dict.fromkeys(range(10, 16), 2), **dict.fromkeys(range(16, 19), 3)}


def cases() -> Iterator[Case]:
    """Every scikit-learn model."""
    yield from _neighbours()
    yield from _gaussian_processes()
    yield from _classifiers()
    yield from _regressors()
    yield from _transformers()
    yield _mixed_columns()


def _case(
    name: str,
    model: BaseEstimator,
    methods: Sequence[str],
    *,
    opsets: Sequence[int] = FEW,
    options: dict[str, object] | None = None,
    fresh: np.ndarray = FRESH,
    rejected: Sequence[int] = (),
) -> Case:
    """A fitted model; `methods` name what it computes, in the order of the model's outputs."""

    def export(opset: int) -> ModelProto:
        _number_names_anew()
        kinds = [("X", FloatTensorType([None, fresh.shape[1]]))]
        versions = {"": opset, "ai.onnx.ml": ML[opset]}
        found = to_onnx(
            model, initial_types=kinds, target_opset=versions, options=options, name=name
        )
        return _without_addresses(found)

    outputs = [_plain(getattr(model, method)(fresh)) for method in methods]
    return Case(name, export, [fresh], outputs or None, opsets, rejected)


def _number_names_anew() -> None:
    """The exporter numbers its names through all models of a process: begin at 0 again."""
    Variable._UNIQUE_NUMBER_ = 0
    _unique_index["subgraph"] = 0


def _without_addresses(model: ModelProto) -> ModelProto:
    """Of some distances, the exporter takes addresses in memory for names: ones instead."""
    data = model.SerializeToString()
    return onnx.load_from_string(re.sub(rb"(?<=norm_)\d{9,}", lambda at: b"1" * len(at[0]), data))


def _plain(values: np.ndarray) -> np.ndarray:
    """As an exported model gives it: float32, and a column where sklearn gives a vector."""
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return values
    return values.astype(np.float32).reshape(len(values), -1)


def _neighbours() -> Iterator[Case]:
    both = ["predict", "predict_proba"]
    flat = {"zipmap": False}
    model = KNeighborsClassifier(3).fit(X, KIND)
    yield _case("knn_classifier", model, both, opsets=EVERY, options=flat)
    model = KNeighborsClassifier(3, metric="manhattan", weights="distance").fit(X, NAMES)
    yield _case("knn_manhattan_names", model, [], options=flat)
    yield _case("knn_regressor", KNeighborsRegressor(2).fit(X, TARGET), ["predict"], opsets=EVERY)
    model = KNeighborsRegressor(3, metric="minkowski", p=3).fit(X, TARGET)
    yield _case("knn_minkowski", model, ["predict"], opsets=(11, 18))
    yield _case(
        "nearest_neighbors",
        NearestNeighbors(n_neighbors=2, radius=None).fit(X),
        [],
        opsets=(11, 18),
    )
    outliers = LocalOutlierFactor(n_neighbors=4, novelty=True).fit(X)
    yield _case("local_outliers", outliers, [], opsets=(11, 18))
    holes = FRESH.copy()
    holes[[0, 2, 3], [1, 0, 2]] = np.nan
    imputer = KNNImputer(n_neighbors=2).fit(X)
    yield _case("knn_imputer", imputer, ["transform"], opsets=(18,), fresh=holes)


def _gaussian_processes() -> Iterator[Case]:
    kernel = RBF() + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X, TARGET)
    yield _case("gaussian_process", model, ["predict"], opsets=EVERY)
    model = GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None).fit(X, TARGET)
    options: dict[str, object] = {"return_std": True}
    model.predict(X, return_std=True)
    some = (11, 18)
    yield _case("gaussian_process_std", model, [], opsets=some, options=options, rejected=some)
    kernel = ExpSineSquared(1.5, 2.0)
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X[:, :1], TARGET)
    yield _case("gaussian_process_sine", model, ["predict"], fresh=FRESH[:, :1])
    model = GaussianProcessRegressor(Matern(), alpha=0.1, optimizer=None).fit(X, TARGET)
    yield _case("gaussian_process_matern", model, ["predict"], opsets=(13, 18))


def _classifiers() -> Iterator[Case]:
    both = ["predict", "predict_proba"]
    flat = {"zipmap": False}
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, KIND)
    yield _case("scaled_logistic", pipeline, both, options=flat)
    yield _case("logistic_maps", LogisticRegression().fit(X, NAMES), [], opsets=(9, 15))
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, KIND)
    yield _case("forest", forest, both, options=flat)
    machine = SVC(random_state=0).fit(X, KIND)
    yield _case("svc", machine, [], options=flat)
    network = MLPClassifier((6,), random_state=0, max_iter=40).fit(X, KIND)
    yield _case("mlp_classifier", network, both, options=flat)
    yield _case("naive_bayes", GaussianNB().fit(X, KIND), both, options=flat)
    mixture = GaussianMixture(2, random_state=0).fit(X)
    yield _case("gaussian_mixture", mixture, [])


def _regressors() -> Iterator[Case]:
    boosted = GradientBoostingRegressor(n_estimators=5, max_depth=2, random_state=0).fit(X, TARGET)
    yield _case("boosted_trees", boosted, ["predict"], opsets=(9, 18))
    yield _case("svr", SVR().fit(X, TARGET), ["predict"], opsets=(9, 18))
    network = MLPRegressor(
        hidden_layer_sizes=(5, 4), activation="tanh", random_state=0, max_iter=40
    ).fit(X, TARGET)
    yield _case("mlp_regressor", network, ["predict"])
    forest = IsolationForest(n_estimators=3, random_state=0).fit(X)
    yield _case("isolation_forest", forest, [], opsets=(11, 18))


def _transformers() -> Iterator[Case]:
    means = KMeans(3, random_state=0, n_init=2).fit(X)
    yield _case("kmeans", means, ["predict", "transform"], opsets=EVERY)
    yield _case("pca", PCA(2, random_state=0).fit(X), ["transform"])
    yield _case("polynomial", PolynomialFeatures(2).fit(X), ["transform"])
    bins = KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf").fit(X)
    yield _case("bins", bins, ["transform"], opsets=(9, 18))


def _mixed_columns() -> Case:
    """Numbers and words side by side, each with its own preparation."""
    words = np.array([["red", "s"], ["green", "m"], ["blue", "l"], ["red", "l"]] * 6)
    table = np.concatenate([X.astype(object), words], axis=1)
    model = make_pipeline(
        ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2]),
                ("colour", OneHotEncoder(handle_unknown="ignore"), [3]),
                ("size", OrdinalEncoder(), [4]),
            ]
        ),
        LogisticRegression(),
    ).fit(table, KIND)

    def export(opset: int) -> ModelProto:
        kinds = [("numbers", FloatTensorType([None, 3])), ("words", StringTensorType([None, 2]))]
        versions = {"": opset, "ai.onnx.ml": ML[opset]}
        options = {"zipmap": False}
        return to_onnx(
            model, initial_types=kinds, target_opset=versions, options=options, name="mixed"
        )

    few = words[:5].copy()
    few[1, 0] = "grey"
    fresh = np.concatenate([FRESH.astype(object), few], axis=1)
    outputs = [_plain(model.predict(fresh)), _plain(model.predict_proba(fresh))]
    return Case("mixed_columns", export, [FRESH, few], outputs, FEW[1:])

//===- Named.cpp - The masks and scores that have names -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// i + keys - queries is the key position that query i sits at: the last query
// is aligned with the last key.
//
//===----------------------------------------------------------------------===//

#include "tools/oracle/Gradients.h"
#include "tools/oracle/Require.h"

#include <cmath>
#include <cstdlib>
#include <memory>

using namespace burst::oracle;

namespace {

/// A table that the copies of a std::function share.
template <typename T>
using Shared = std::shared_ptr<const std::vector<T>>;

template <typename T>
Shared<T> share(std::vector<T> values) {
  return std::make_shared<const std::vector<T>>(std::move(values));
}

/// A table of `extent` entries, or of `batch` times as many. Returns how far
/// apart two batches are.
int64_t batchStride(size_t entries, int64_t batch, int64_t extent,
                    const char *what) {
  int64_t size = int64_t(entries);
  require(size == extent || size == batch * extent, what);
  return size == extent ? 0 : extent;
}

} // namespace

Mask burst::oracle::causal(const Sizes &sizes) {
  int64_t shift = sizes.keys - sizes.queries;
  return [shift](const Point &p) { return p.j <= p.i + shift; };
}

Mask burst::oracle::window(const Sizes &sizes, std::optional<int64_t> left,
                           std::optional<int64_t> right) {
  int64_t shift = sizes.keys - sizes.queries;
  return [shift, left, right](const Point &p) {
    int64_t ahead = p.j - (p.i + shift);
    return (!left || -ahead <= *left) && (!right || ahead <= *right);
  };
}

Mask burst::oracle::prefix(const Sizes &sizes, int64_t length) {
  int64_t shift = sizes.keys - sizes.queries;
  return [shift, length](const Point &p) {
    return p.j < length || p.j <= p.i + shift;
  };
}

Mask burst::oracle::documents(const Sizes &sizes, std::vector<int64_t> queryIds,
                              std::vector<int64_t> keyIds) {
  int64_t queryStride = batchStride(queryIds.size(), sizes.batch, sizes.queries,
                                    "wrong number of query ids");
  int64_t keyStride = batchStride(keyIds.size(), sizes.batch, sizes.keys,
                                  "wrong number of key ids");
  return [queryStride, keyStride, queries = share(std::move(queryIds)),
          keys = share(std::move(keyIds))](const Point &p) {
    return (*queries)[p.b * queryStride + p.i] ==
           (*keys)[p.b * keyStride + p.j];
  };
}

/// Between the key position that a query sits at and that of the key.
static double distance(int64_t shift, const Point &p) {
  return double(std::abs(p.i + shift - p.j));
}

Score burst::oracle::alibi(const Sizes &sizes, std::vector<double> slopes) {
  int64_t shift = sizes.keys - sizes.queries;
  int64_t stride = batchStride(slopes.size(), sizes.batch, sizes.queryHeads,
                               "wrong number of slopes");
  return [shift, stride, table = share(std::move(slopes))](double s,
                                                           const Point &p) {
    return s - (*table)[p.b * stride + p.h] * distance(shift, p);
  };
}

ScoreSlope burst::oracle::alibiSlope(const Sizes &sizes, int64_t slopes,
                                     std::optional<int64_t> table) {
  int64_t shift = sizes.keys - sizes.queries;
  int64_t stride = batchStride(size_t(slopes), sizes.batch, sizes.queryHeads,
                               "wrong number of slopes");
  return [shift, stride, table](double, double, const Point &p,
                                bool wantsElements) {
    Slope slope;
    if (table && wantsElements)
      slope.elements = {{*table, p.b * stride + p.h, -distance(shift, p)}};
    return slope;
  };
}

Score burst::oracle::softcap(double cap) {
  return [cap](double s, const Point &) { return cap * std::tanh(s / cap); };
}

ScoreSlope burst::oracle::softcapSlope(double cap) {
  return [cap](double s, double, const Point &, bool) {
    // 1 - tanh^2, and its derivative.
    double secant = 1 / std::cosh(s / cap);
    Slope slope;
    slope.slope = secant * secant;
    slope.curvature = std::abs(2 / cap * std::tanh(s / cap)) * slope.slope;
    return slope;
  };
}

namespace {

/// Where a bias is read.
struct BiasIndex {
  int64_t b, h, i, j, size;

  BiasIndex(const Sizes &sizes, std::vector<int64_t> shape) {
    require(shape.size() == 2 || shape.size() == 4, "a bias has rank 2 or 4");
    bool broadcast = shape.size() == 4;
    if (!broadcast)
      shape.insert(shape.begin(), {1, 1});
    const int64_t full[] = {sizes.batch, sizes.queryHeads, sizes.queries,
                            sizes.keys};
    int64_t strides[4], stride = 1;
    for (int k = 3; k >= 0; --k) {
      bool once = shape[k] == 1 && (broadcast || k < 2);
      require(once || shape[k] == full[k], "wrong shape of a bias");
      strides[k] = once ? 0 : stride;
      stride *= shape[k];
    }
    b = strides[0], h = strides[1], i = strides[2], j = strides[3];
    size = stride;
  }

  int64_t operator()(const Point &p) const {
    return p.b * b + p.h * h + p.i * i + p.j * j;
  }
};

} // namespace

Score burst::oracle::bias(const Sizes &sizes, std::vector<int64_t> shape,
                          std::vector<double> values) {
  BiasIndex index(sizes, std::move(shape));
  require(int64_t(values.size()) == index.size, "wrong number of bias values");
  return [index, table = share(std::move(values))](double s, const Point &p) {
    return s + (*table)[index(p)];
  };
}

ScoreSlope burst::oracle::biasSlope(const Sizes &sizes,
                                    std::vector<int64_t> shape,
                                    std::optional<int64_t> table) {
  BiasIndex index(sizes, std::move(shape));
  return [index, table](double, double, const Point &p, bool wantsElements) {
    Slope slope;
    if (table && wantsElements)
      slope.elements = {{*table, index(p), 1}};
    return slope;
  };
}

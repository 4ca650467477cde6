//===- ExplainTest.cpp - what is told of a schedule -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <nlohmann/json.hpp>

using namespace burst;
using namespace burst::test;

static std::string attentionOn(int ranks) {
  return "shard.grid @g(shape = " + std::to_string(ranks) + R"()
!q = tensor<1x2048x1x4xf32>
!l = tensor<1x1x2048xf32>
func.func @f(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@g, zigzag>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
)";
}

static std::string tell(const std::string &text, int64_t what,
                        int64_t maxRanks = 0) {
  auto config = api::make<burst_explain_config>();
  config.what = what;
  config.max_ranks = maxRanks;
  auto told = api::explain(text, config);
  if (!told) {
    ADD_FAILURE() << told.error().message();
    return "";
  }
  return *told;
}

static bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

TEST(Explain, tellsWhatRanksDo) {
  std::string table = tell(attentionOn(4), BURST_EXPLAIN_TABLE);
  EXPECT_TRUE(contains(table, "rank 3")) << table;
  EXPECT_TRUE(contains(table, "proved for every number of ranks:")) << table;
  EXPECT_FALSE(
      contains(tell(attentionOn(4), BURST_EXPLAIN_TABLE, 2), "rank 3"));
  EXPECT_TRUE(
      contains(tell(attentionOn(256), BURST_EXPLAIN_TABLE), "256 ranks"));
}

TEST(Explain, plansAreJson) {
  auto plan = nlohmann::json::parse(tell(attentionOn(3), BURST_EXPLAIN_PLAN));
  ASSERT_EQ(plan["per_rank"].size(), 3u);
  EXPECT_GT(plan["per_rank"][1]["bytes_sent"], 0);
}

TEST(Explain, drawsPictures) {
  std::string picture = tell(attentionOn(2), BURST_EXPLAIN_SVG);
  EXPECT_EQ(picture.find("<svg"), 0u) << picture.substr(0, 80);
  EXPECT_TRUE(contains(picture, "</svg>"));
}

TEST(Explain, refusals) {
  auto config = api::make<burst_explain_config>();
  config.name = "f.mlir";
  auto told = api::explain("oops", config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code(), BURST_INVALID_PROGRAM);
  EXPECT_EQ(told.error().location(), "f.mlir:1:1");
  told = api::explain("module {}");
  ASSERT_FALSE(told);
  EXPECT_EQ(
      told.error().message(),
      "text: no function with burst.attention, nor the program of a rank");
  config.what = 3;
  told = api::explain(attentionOn(2), config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message(),
            "burst_explain_config: what: 3, wanted BURST_EXPLAIN_TABLE, _PLAN "
            "or _SVG");
  config.what = BURST_EXPLAIN_PLAN;
  config.max_ranks = 4;
  told = api::explain(attentionOn(2), config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message(), "burst_explain_config: max_ranks: 4, "
                                    "wanted 0: a plan has all ranks");
  config.what = BURST_EXPLAIN_TABLE;
  config.max_ranks = -1;
  told = api::explain(attentionOn(2), config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message(),
            "burst_explain_config: max_ranks: -1, wanted at least 1, or 0");
  std::string open = attentionOn(2);
  for (size_t at; (at = open.find("2048")) != std::string::npos;)
    open.replace(at, 4, "?");
  config.max_ranks = 0;
  for (int64_t what : {BURST_EXPLAIN_TABLE, BURST_EXPLAIN_PLAN}) {
    config.what = what;
    told = api::explain(open, config);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code(), BURST_INVALID_PROGRAM);
  }
}

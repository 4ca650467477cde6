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

TEST(Explain, tellsTheTimeOnAMachine) {
  auto config = api::make<burst_explain_config>();
  config.machine =
      "module attributes {dlti.target_system_spec = #dlti.target_system_spec<"
      "\"burst\" = #dlti.target_device_spec<\"burst.flops\" = 1.0e9 : f64, "
      "\"burst.peak\" = 2.0e9 : f64>>} {}";
  auto ask = [&](int64_t what) {
    config.what = what;
    auto told = api::explain(attentionOn(4), config);
    if (!told)
      ADD_FAILURE() << told.error().message();
    return told ? *told : std::string();
  };
  auto time = nlohmann::json::parse(ask(BURST_EXPLAIN_TIME_JSON));
  // Half of the pairs of 2048 positions, 16 operations each, over 4 ranks; less
  // than half, since partial tiles are computed in full.
  double atBest = 2048.0 * 2048 * 16 / 2 / 4 / 1e9;
  EXPECT_GT(time["seconds"], atBest);
  EXPECT_LT(time["seconds"], 1.1 * atBest);
  EXPECT_LT(time["share_of_peak"], 0.5);
  EXPECT_TRUE(contains(ask(BURST_EXPLAIN_TIME), "limited by computation"));
  EXPECT_TRUE(contains(ask(BURST_EXPLAIN_COMPARISON), "all_gather"));
  config.compare = "strategies,orders";
  EXPECT_TRUE(contains(ask(BURST_EXPLAIN_COMPARISON), "all_gather, zigzag"));
  config.compare = nullptr;
  EXPECT_TRUE(contains(ask(BURST_EXPLAIN_TIMELINE_SVG), "<svg"));
  auto trace = nlohmann::json::parse(ask(BURST_EXPLAIN_TIMELINE));
  EXPECT_FALSE(trace["traceEvents"].empty());
  config.max_ranks = 3;
  config.what = BURST_EXPLAIN_TIME;
  auto refused = api::explain(attentionOn(4), config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "burst_explain_config: max_ranks: 3, wanted 0: a time has all "
            "ranks");
  config.max_ranks = 0;
  config.machine = "module {}";
  refused = api::explain(attentionOn(4), config);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(
      contains(std::string(refused.error().message()), "describes no machine"))
      << refused.error().message();
}

TEST(Explain, withoutOptimisations) {
  auto config = api::make<burst_explain_config>();
  config.what = BURST_EXPLAIN_PLAN;
  auto sent = [&](const char *without) {
    config.without = without;
    auto told = api::explain(attentionOn(3), config);
    if (!told) {
      ADD_FAILURE() << told.error().message();
      return 0;
    }
    int bytes = 0;
    auto plan = nlohmann::json::parse(*told);
    for (const auto &rank : plan["per_rank"])
      bytes += rank["bytes_sent"].get<int>();
    return bytes;
  };
  EXPECT_EQ(sent("overlap"), sent(nullptr));
  EXPECT_GT(sent("overlap,dropping"), sent(nullptr));
  config.without = "local_tiling";
  auto refused = api::explain(attentionOn(3), config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), BURST_INVALID_ARGUMENT);
  EXPECT_EQ(refused.error().message(),
            "burst_explain_config: without 'local_tiling', which is no part of "
            "a schedule; there are: overlap, dropping");
  config.what = BURST_EXPLAIN_TABLE;
  config.without = "dropping";
  EXPECT_TRUE(contains(*api::explain(attentionOn(3), config),
                       "that it rules out are computed too"));
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
  config.what = BURST_EXPLAIN_COMPARISON + 1;
  told = api::explain(attentionOn(2), config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message(),
            "burst_explain_config: what: 8, wanted BURST_EXPLAIN_TABLE, _PLAN, "
            "_SVG, _TIME, _TIME_JSON, _TIMELINE, _TIMELINE_SVG or _COMPARISON");
  config.what = BURST_EXPLAIN_COMPARISON;
  config.compare = "orders,masks";
  told = api::explain(attentionOn(2), config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message(),
            "burst_explain_config: compare: 'masks', wanted strategies, orders "
            "or placements");
  config.what = BURST_EXPLAIN_TIME;
  told = api::explain(attentionOn(2), config);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message(),
            "burst_explain_config: compare: 'orders,masks', wanted NULL: what "
            "is told is no comparison");
  config.compare = nullptr;
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

//===- AttentionTest.cpp - descriptions -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <cmath>

using namespace burst;
using namespace burst::test;

static std::string refusal(const burst_attention &attention) {
  char *text = nullptr;
  std::string error = take(burst_attention_text(&attention, &text));
  EXPECT_EQ(text == nullptr, !error.empty());
  burst_text_destroy(text);
  return error;
}

static void expectRuns(const burst_attention &attention, int64_t queries = 0,
                       int64_t keys = 0) {
  api::Program program = compiled(attention);
  if (!program.get())
    return;
  Problem problem(attention, queries, keys);
  expectSuccess(program.prove(problem.arguments(program)));
  expectSuccess(problem.run(program));
  problem.expectResults();
}

TEST(Attention, causalZigzag) { expectRuns(smallAttention()); }

/// The text of a description that is right.
static std::string textOf(const burst_attention &attention) {
  char *text = nullptr;
  EXPECT_EQ(take(burst_attention_text(&attention, &text)), "");
  std::string copy = text ? text : "";
  burst_text_destroy(text);
  return copy;
}

TEST(Attention, everyMask) {
  for (const char *mask :
       {static_cast<const char *>(nullptr), "full", "causal",
        "window<left = 5, right = 2>", "window<right = 3>", "window<>",
        "prefix<11>", "documents", "[documents, causal, window<left = 4>]",
        " [ causal,full , prefix < 11 >] "}) {
    SCOPED_TRACE(mask ? mask : "no mask");
    burst_attention attention = smallAttention();
    attention.axes = axis(3, nullptr);
    attention.mask = mask;
    expectRuns(attention);
  }
}

TEST(Attention, everyScoreAndTheScale) {
  for (const char *score :
       {"softcap<1.5>", "alibi", "bias", "[softcap<1.5>, alibi]",
        "[bias, softcap<15.0e-1>, alibi]"}) {
    SCOPED_TRACE(score);
    burst_attention attention = smallAttention();
    attention.scale = 0.3;
    attention.score = score;
    expectRuns(attention);
  }
}

TEST(Attention, stripesLengthsAndDimensionsThatDiffer) {
  burst_attention attention = smallAttention();
  for (const char *order : {"striped", "striped 4"}) {
    attention.axes = axis(3, order);
    attention.query_length = 13;
    attention.value_dim = 5;
    expectRuns(attention);
  }
}

TEST(Attention, oneRank) {
  burst_attention attention = smallAttention();
  attention.axes = axis(1, "zigzag");
  expectRuns(attention);
}

TEST(Attention, gridsOfSeveralAxes) {
  burst_attention attention = smallAttention();
  attention.score = "alibi"; // which knows the heads of all ranks
  const burst_axis all[] = {
      {2, nullptr, "heads"}, {3, "zigzag", nullptr}, {2, nullptr, "batch"}};
  attention.axes = all;
  attention.num_axes = 3;
  expectRuns(attention);
  // The sequence over two axes; on one rank.
  const burst_axis two[] = {{2, "contiguous", "sequence"},
                            {2, nullptr, nullptr},
                            {2, nullptr, "heads"}};
  attention.axes = two;
  expectRuns(attention);
  attention.axes = all;
  attention.num_axes = 1;
  expectRuns(attention);
}

TEST(Attention, sizesKnownAtRunTime) {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  expectRuns(attention, 17, 31);
  attention.mask = "[documents, causal]";
  attention.score = "bias";
  expectRuns(attention, 24, 24);
}

TEST(Attention, scoresThatAreStored) {
  burst_attention attention = smallAttention();
  attention.strategy = "ring_scores";
  expectRuns(attention);
}

TEST(Attention, withoutOptimisations) {
  burst_attention attention = smallAttention();
  auto config = api::make<burst_compile_config>();
  for (const char *names : {"overlap", "dropping", "local_tiling",
                            "local_tiling,overlap,dropping", ""}) {
    config.without = names;
    api::Program program = compiled(attention, config);
    ASSERT_TRUE(program.get());
    EXPECT_EQ(program.proof(), BURST_PROOF_ALL_RANKS);
    Problem problem(attention);
    expectSuccess(problem.run(program));
    problem.expectResults();
  }
  config.without = "overlap,fusion";
  auto refused = api::Program::compile(attention, config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), BURST_INVALID_ARGUMENT);
  EXPECT_EQ(refused.error().message(),
            "burst_compile_config: without 'fusion', which is not known; there "
            "are: overlap, dropping, local_tiling");
  config.without = "local_tiling";
  config.target = "cuda";
  refused = api::Program::compile(attention, config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "burst_compile_config: without 'local_tiling', which kernels of "
            "GPUs always have; there are: overlap, dropping");
}

/// Forward, then backward, on one problem.
static void
expectBackwardRuns(burst_attention attention, int64_t queries = 0,
                   int64_t keys = 0,
                   std::initializer_list<const char *> strategies = {
                       "ring_kv", "ring_q", "all_gather"}) {
  Problem problem(attention, queries, keys);
  api::Program forward = compiled(attention);
  attention.pass = problem.attention.pass = BURST_BACKWARD;
  for (const char *strategy : strategies) {
    attention.strategy = strategy;
    api::Program backward = compiled(attention);
    if (!forward.get() || !backward.get())
      return;
    problem.attention.pass = BURST_FORWARD;
    expectSuccess(problem.run(forward));
    problem.attention.pass = BURST_BACKWARD;
    expectSuccess(backward.prove(problem.arguments(backward)));
    expectSuccess(problem.run(backward));
    problem.expectGradients();
  }
}

TEST(Attention, gradientsOfScoresThatAreStored) {
  burst_attention attention = smallAttention();
  for (const char *score :
       {static_cast<const char *>(nullptr), "alibi", "[bias, alibi]"}) {
    attention.score = score;
    expectBackwardRuns(attention, 0, 0, {"ring_scores"});
  }
  attention.score = "softcap<1.5>";
  attention.pass = BURST_BACKWARD;
  attention.strategy = "ring_scores";
  api::Result<api::Program> refused = api::Program::compile(attention);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find(
                "has no backward pass through a score whose derivative reads"),
            std::string::npos)
      << refused.error().message();
}

TEST(Attention, backward) {
  burst_attention attention = smallAttention();
  expectBackwardRuns(attention);
  attention.score = "[softcap<1.5>, alibi, bias]";
  attention.axes = axis(3, "striped");
  attention.query_length = 13;
  attention.value_dim = 5;
  expectBackwardRuns(attention);
  const burst_axis grid[] = {
      {2, nullptr, "heads"}, {3, "zigzag", nullptr}, {2, nullptr, "batch"}};
  attention.axes = grid;
  attention.num_axes = 3;
  expectBackwardRuns(attention);
}

/// As tensor parallelism has them: what a rank has of them is cut further.
TEST(Attention, headsOnTheInnermostAxis) {
  burst_attention attention = smallAttention();
  const burst_axis grid[] = {
      {2, "zigzag", nullptr}, {2, nullptr, nullptr}, {2, nullptr, "heads"}};
  attention.axes = grid;
  attention.num_axes = 3;
  attention.key_heads = 4;
  attention.score = "alibi";
  attention.strategy = "ulysses on [1], ring_kv on [0]";
  expectRuns(attention);
  expectBackwardRuns(attention, 0, 0, {"ulysses on [1], ring_q on [0]"});
}

/// Of every strategy, and where heads are exchanged, alone or around another.
TEST(Attention, maxScores) {
  burst_attention attention = smallAttention();
  attention.max_scores = 1;
  for (const char *strategy :
       {"ring_kv", "ring_q", "bi_ring_kv", "bi_ring_q", "direct_kv", "direct_q",
        "all_gather", "gather_q", "ring_scores"}) {
    attention.strategy = strategy;
    expectRuns(attention);
  }
  const burst_axis grid[] = {{2, "zigzag", nullptr}, {2, nullptr, nullptr}};
  attention.axes = grid;
  attention.num_axes = 2;
  attention.score = "[softcap<1.5>, alibi]";
  attention.mask = "[causal, documents]";
  attention.query_length = 37; // of which some see no key
  for (const char *strategy :
       {"double_ring_kv", "double_ring_q", "ulysses on [1], ring_kv on [0]"}) {
    attention.strategy = strategy;
    expectRuns(attention);
  }
  attention.num_axes = 1;
  attention.strategy = "ulysses";
  attention.query_length = -1;
  expectRuns(attention, 23);
}

/// Of eight heads, over one axis.
static burst_attention ofEightHeads(const burst_axis &axis) {
  burst_attention attention = smallAttention();
  attention.axes = &axis;
  attention.num_axes = 1;
  attention.score = "alibi";
  attention.query_heads = 8;
  return attention;
}

TEST(Attention, chunksOfHeads) {
  const burst_axis axis = {2, "zigzag", nullptr};
  burst_attention attention = ofEightHeads(axis);
  attention.key_heads = 2; // which come whole
  for (const char *strategy :
       {"ulysses in 2 chunks", " ulysses on [0] in  4 chunks "}) {
    attention.strategy = strategy;
    expectRuns(attention);
    expectBackwardRuns(attention, 0, 0, {strategy, "ulysses"});
  }
  attention.key_heads = 8;
  attention.strategy = "ulysses in 2 chunks";
  expectBackwardRuns(attention, 0, 0, {"ulysses in 2 chunks", "ulysses"});
}

TEST(Attention, unevenHeads) {
  const burst_axis axis = {3, "zigzag", nullptr};
  burst_attention attention = ofEightHeads(axis);
  attention.strategy = "ulysses";
  for (int64_t keyHeads : {8, 4, 1}) {
    attention.key_heads = keyHeads;
    expectRuns(attention);
    expectBackwardRuns(attention, 0, 0, {"ulysses", "ulysses"});
  }
  // Two ranks for each of two key heads, and one is left.
  const burst_axis five = {5, "zigzag", nullptr};
  attention = ofEightHeads(five);
  attention.key_heads = 2;
  for (const char *strategy : {"ulysses", "ulysses in 2 chunks"}) {
    attention.strategy = strategy;
    expectRuns(attention);
    expectBackwardRuns(attention, 0, 0, {strategy, "ulysses"});
  }
}

TEST(Attention, moreGradients) {
  burst_attention attention = smallAttention();
  attention.lse_gradient = 0;
  attention.score = "[softcap<1.5>, alibi, bias]";
  Problem problem(attention);
  expectSuccess(problem.run(compiled(attention)));
  attention.pass = BURST_BACKWARD;
  attention.lse_gradient = 1;
  for (const char *gradients :
       {"bias", "slopes", "slopes,bias", "bias,slopes"}) {
    attention.gradients = gradients;
    problem.attention = attention;
    expectSuccess(problem.run(compiled(attention)));
    problem.expectGradients();
  }
}

TEST(Attention, moreResultsAreChecked) {
  burst_attention attention = smallAttention();
  attention.lse_gradient = 1;
  EXPECT_EQ(refusal(attention), "burst_attention: lse_gradient 1, wanted 0: "
                                "only the backward pass takes one");
  attention.lse_gradient = 0;
  attention.gradients = "bias";
  EXPECT_EQ(refusal(attention), "burst_attention: gradients 'bias', wanted "
                                "NULL: only the backward pass gives some");
  attention.pass = BURST_BACKWARD;
  attention.max_scores = 1;
  attention.gradients = nullptr;
  EXPECT_EQ(refusal(attention), "burst_attention: max_scores 1, wanted 0: the "
                                "backward pass gives gradients only");
  attention.max_scores = 0;
  attention.score = "bias";
  for (const char *gradients : {"", "slopes", "bias,", "bias,bias",
                                "bias, bias", "query_ids", "bias]"}) {
    attention.gradients = gradients;
    EXPECT_EQ(refusal(attention),
              std::string("burst_attention: gradients '") + gradients +
                  "', wanted slopes (of alibi) and bias (of bias), each once "
                  "and where the score takes it, as in \"slopes,bias\"");
  }
}

/// What works along the axes of a grid, each by itself.
TEST(Attention, strategiesOfTwoAxes) {
  burst_attention attention = smallAttention();
  attention.query_heads = 12;
  attention.key_heads = 6;
  attention.score = "alibi";
  const burst_axis grid[] = {{3, "zigzag", nullptr}, {2, nullptr, nullptr}};
  attention.axes = grid;
  attention.num_axes = 2;
  for (const char *strategy :
       {"ulysses on [1], ring_kv on [0]", " ulysses on [ 1 ] , all_gather",
        "ulysses on [1]", "ulysses", "double_ring_kv", "double_ring_q",
        "gather_q", "direct_kv", "direct_q", "bi_ring_kv", "bi_ring_q"}) {
    attention.strategy = strategy;
    attention.pass = BURST_FORWARD;
    Problem problem(attention);
    api::Program forward = compiled(attention);
    attention.pass = problem.attention.pass = BURST_BACKWARD;
    api::Program backward = compiled(attention);
    ASSERT_TRUE(forward.get() && backward.get());
    EXPECT_EQ(forward.numRanks(), 6);
    problem.attention.pass = BURST_FORWARD;
    expectSuccess(problem.run(forward));
    problem.expectResults();
    problem.attention.pass = BURST_BACKWARD;
    expectSuccess(backward.prove(problem.arguments(backward)));
    expectSuccess(problem.run(backward));
    problem.expectGradients();
  }
}

TEST(Attention, backwardOfSizesKnownAtRunTime) {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask = "[documents, causal]";
  attention.axes = axis(3, "contiguous");
  expectBackwardRuns(attention, 24, 24);
}

static void expectForwardRuns(const char *strategy) {
  burst_attention attention = smallAttention();
  attention.strategy = strategy;
  expectRuns(attention);
  attention.axes = axis(3, "striped");
  attention.query_length = 2; // fewer than ranks
  attention.value_dim = 5;
  expectRuns(attention);
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask = "[documents, causal]";
  expectRuns(attention, 17, 17);
}

TEST(Attention, queriesTravel) { expectForwardRuns("ring_q"); }

TEST(Attention, keysAreGathered) { expectForwardRuns("all_gather"); }

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

TEST(Attention, textOfTheForwardPass) {
  burst_attention attention = smallAttention();
  attention.axes = axis(3, "striped 4");
  attention.mask = "[documents, causal, window<left = 4>]";
  attention.score = "[bias, softcap<30.0>, alibi]";
  attention.scale = 0.5;
  attention.strategy = "ring_q";
  attention.query_length = -1;
  // A name that takes several tables is the last one of a mask.
  EXPECT_EQ(textOf(attention),
            R"(shard.grid @ranks(shape = 3)

func.func @attention(%q: tensor<2x?x4x8xf32> {burst.name = "q"},
    %k: tensor<2x29x2x8xf32> {burst.name = "k"},
    %v: tensor<2x29x2x8xf32> {burst.name = "v"},
    %query_ids: tensor<?xi32> {burst.name = "query_ids"},
    %key_ids: tensor<29xi32> {burst.name = "key_ids"},
    %slopes: tensor<4xf32> {burst.name = "slopes"},
    %bias: tensor<?x29xf32> {burst.name = "bias"})
    -> (tensor<2x?x4x8xf32> {burst.name = "o"},
        tensor<2x4x?xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v
      mask [causal, window<left = 4>, documents](%query_ids, %key_ids : tensor<?xi32>, tensor<29xi32>)
      score [bias, softcap<30.0>, alibi](%bias, %slopes : tensor<?x29xf32>, tensor<4xf32>)
      scale 5.00000000000000000e-01
      sequence <@ranks, striped 4>
      strategy <ring_q>
      : (tensor<2x?x4x8xf32>, tensor<2x29x2x8xf32>, tensor<2x29x2x8xf32>)
      -> (tensor<2x?x4x8xf32>, tensor<2x4x?xf32>)
  return %o, %lse : tensor<2x?x4x8xf32>, tensor<2x4x?xf32>
}
)");
}

TEST(Attention, textOfTheBackwardPass) {
  burst_attention attention = smallAttention();
  attention.axes = axis(3, nullptr);
  attention.type = BURST_F64;
  attention.value_dim = 5;
  attention.mask = nullptr;
  attention.score = "bias";
  attention.pass = BURST_BACKWARD;
  EXPECT_EQ(textOf(attention),
            R"(shard.grid @ranks(shape = 3)

func.func @attention(%q: tensor<2x29x4x8xf64> {burst.name = "q"},
    %k: tensor<2x29x2x8xf64> {burst.name = "k"},
    %v: tensor<2x29x2x5xf64> {burst.name = "v"},
    %o: tensor<2x29x4x5xf64> {burst.name = "o"},
    %lse: tensor<2x4x29xf64> {burst.name = "lse"},
    %do: tensor<2x29x4x5xf64> {burst.name = "do"},
    %bias: tensor<29x29xf64> {burst.name = "bias"})
    -> (tensor<2x29x4x8xf64> {burst.name = "dq"},
        tensor<2x29x2x8xf64> {burst.name = "dk"},
        tensor<2x29x2x5xf64> {burst.name = "dv"}) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score [bias](%bias : tensor<29x29xf64>)
      sequence <@ranks, contiguous>
      : (tensor<2x29x4x8xf64>, tensor<2x29x2x8xf64>, tensor<2x29x2x5xf64>, tensor<2x29x4x5xf64>, tensor<2x4x29xf64>, tensor<2x29x4x5xf64>)
      -> (tensor<2x29x4x8xf64>, tensor<2x29x2x8xf64>, tensor<2x29x2x5xf64>)
  return %dq, %dk, %dv : tensor<2x29x4x8xf64>, tensor<2x29x2x8xf64>, tensor<2x29x2x5xf64>
}
)");
}

/// The line of `text` that begins with a keyword, without it.
static std::string lineOf(const std::string &text, const std::string &keyword) {
  size_t at = text.find("      " + keyword + " ");
  if (at == text.npos)
    return "none";
  at += keyword.size() + 7;
  return text.substr(at, text.find('\n', at) - at);
}

TEST(Attention, namesInTheText) {
  auto mask = [](const char *value) {
    burst_attention attention = smallAttention();
    attention.mask = value;
    return lineOf(textOf(attention), "mask");
  };
  EXPECT_EQ(mask(nullptr), "none");
  EXPECT_EQ(mask("full"), "[full]");
  EXPECT_EQ(mask(" causal "), "[causal]");
  EXPECT_EQ(mask("[causal,full]"), "[causal, full]");
  EXPECT_EQ(mask("window<left = 1, right=0>"), "[window<left = 1, right=0>]");
  EXPECT_EQ(mask("prefix<128>"), "[prefix<128>]");
  EXPECT_EQ(mask("documents"), "[documents](%query_ids, %key_ids : "
                               "tensor<29xi32>, tensor<29xi32>)");
  auto score = [](const char *value) {
    burst_attention attention = smallAttention();
    attention.score = value;
    return lineOf(textOf(attention), "score");
  };
  EXPECT_EQ(score(nullptr), "none");
  EXPECT_EQ(score("softcap<3.0e+1>"), "[softcap<3.0e+1>]");
  EXPECT_EQ(score("alibi"), "[alibi](%slopes : tensor<4xf32>)");
  EXPECT_EQ(score("bias"), "[bias](%bias : tensor<29x29xf32>)");
  EXPECT_EQ(score("[alibi, bias]"), "[alibi, bias](%slopes, %bias : "
                                    "tensor<4xf32>, tensor<29x29xf32>)");
  auto strategy = [](const char *value) {
    burst_attention attention = smallAttention();
    attention.strategy = value;
    return lineOf(textOf(attention), "strategy");
  };
  EXPECT_EQ(strategy(nullptr), "none");
  for (std::string name :
       {"ring_kv", "ring_q", "ring_scores", "all_gather", "gather_q",
        "direct_kv", "direct_q", "double_ring_kv", "double_ring_q",
        "bi_ring_kv", "bi_ring_q", "ulysses"})
    EXPECT_EQ(strategy(name.c_str()), "<" + name + ">");
}

TEST(Attention, textIsThatOfTheModule) {
  burst_attention attention = smallAttention();
  attention.score = "softcap<30.0>";
  std::string text = textOf(attention);
  api::Program program = compiled(std::string_view(text));
  ASSERT_TRUE(program.get());
  EXPECT_EQ(program.name(), "attention");
  EXPECT_EQ(program.numRanks(), 3);
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

TEST(Attention, everyFieldIsChecked) {
  burst_attention good = smallAttention();
  EXPECT_EQ(refusal(good), "");
  auto with = [&](int64_t burst_attention::*field, int64_t value) {
    burst_attention attention = good;
    attention.*field = value;
    return refusal(attention);
  };
  EXPECT_EQ(with(&burst_attention::type, BURST_I32),
            "burst_attention: type 6, wanted BURST_F64, BURST_F32, BURST_BF16 "
            "or BURST_F16");
  EXPECT_EQ(with(&burst_attention::batch, 0),
            "burst_attention: batch 0, wanted -1 (known at run time), or a "
            "number from 1 below 2^40");
  EXPECT_NE(with(&burst_attention::query_length, -2).find("query_length -2"),
            std::string::npos);
  EXPECT_NE(with(&burst_attention::key_length, int64_t{1} << 40)
                .find("key_length 1099511627776"),
            std::string::npos);
  EXPECT_EQ(with(&burst_attention::query_heads, 3),
            "burst_attention: query_heads 3, wanted a multiple of key_heads, "
            "which is 2");
  EXPECT_NE(with(&burst_attention::key_heads, 0).find("key_heads 0"),
            std::string::npos);
  EXPECT_EQ(with(&burst_attention::head_dim, 257),
            "burst_attention: head_dim 257, wanted a number from 1 to 256");
  EXPECT_NE(with(&burst_attention::value_dim, -1).find("value_dim -1"),
            std::string::npos);
  EXPECT_NE(with(&burst_attention::pass, 2).find("pass 2"), std::string::npos);
  burst_attention attention = good;
  attention.scale = INFINITY;
  EXPECT_NE(refusal(attention).find("scale inf"), std::string::npos);
}

TEST(Attention, axesAreChecked) {
  burst_attention attention = smallAttention();
  for (int64_t count : {0, 9, -1}) {
    attention.num_axes = count;
    EXPECT_EQ(refusal(attention), "burst_attention: num_axes " +
                                      std::to_string(count) +
                                      ", wanted a number from 1 to 8");
  }
  auto refusalOf = [&](std::initializer_list<burst_axis> axes) {
    attention.axes = axes.begin();
    attention.num_axes = int64_t(axes.size());
    return refusal(attention);
  };
  EXPECT_EQ(refusalOf({{2, "zigzag", nullptr}, {2, nullptr, "head"}}),
            "burst_attention: axes[1].shards 'head', wanted one of sequence, "
            "heads, batch");
  EXPECT_EQ(refusalOf({{2, "zigzag", nullptr}, {2, "zigzag", "sequence"}}),
            "burst_attention: axes[1].order 'zigzag', wanted null: that of the "
            "first axis holds");
  EXPECT_EQ(refusalOf({{2, "zigzag", nullptr}, {2, "zigzag", "heads"}}),
            "burst_attention: axes[1].order 'zigzag', wanted null: only a "
            "sequence has an order");
  EXPECT_EQ(refusalOf({{2, nullptr, "heads"}, {2, "snake", "sequence"}}),
            "burst_attention: axes[1].order 'snake', wanted one of contiguous, "
            "zigzag, striped, as in striped 64");
  EXPECT_EQ(refusalOf({{2, nullptr, "heads"},
                       {2, "zigzag", "sequence"},
                       {2, nullptr, "heads"}}),
            "burst_attention: axes[2].shards 'heads', wanted what axes[1] "
            "shards, or what none does: those of one follow each other");
  attention.num_axes = 1;
  attention.axes = nullptr;
  EXPECT_EQ(refusal(attention),
            "burst_attention: axes null, wanted num_axes of them");
  attention.axes = axis(0, nullptr);
  EXPECT_EQ(refusal(attention),
            "burst_attention: axes[0].num_ranks 0, wanted a number from 1 to "
            "2147483647");
  for (const char *order :
       {"", "snake", "striped 4 4", "striped,4", "striped 4, zigzag",
        "zigzag> strategy <ring_q", "zigzag\n", "\"zigzag\"", "striped<4>"}) {
    attention.axes = axis(3, order);
    std::string error = refusal(attention);
    EXPECT_EQ(error.find("burst_attention: axes[0].order '"), 0u) << error;
    EXPECT_NE(error.find("', wanted one of contiguous, zigzag, striped, as in "
                         "striped 64"),
              std::string::npos)
        << error;
  }
}

TEST(Attention, namesAreChecked) {
  burst_attention attention = smallAttention();
  const std::string masks = ", wanted one of full, causal, window, prefix, "
                            "documents, as in [causal, window<left = 4>]";
  auto mask = [&](const char *value) {
    attention.mask = value;
    return refusal(attention);
  };
  EXPECT_EQ(mask("casual"), "burst_attention: mask 'casual'" + masks);
  EXPECT_EQ(mask("[causal, alibi]"),
            "burst_attention: mask '[causal, alibi]' with the name 'alibi'" +
                masks);
  EXPECT_EQ(mask("causal\n"), "burst_attention: mask 'causal\\0A'" + masks);
  EXPECT_EQ(mask("caus\xc3\xa4l"),
            "burst_attention: mask 'caus\\C3\\A4l'" + masks);
  for (const char *wrong : {"",
                            "  ",
                            "[]",
                            "[causal",
                            "causal]",
                            "[causal]]",
                            "[causal,]",
                            "causal, full",
                            "causal full",
                            "causal scale 2.0",
                            "window<left = 4",
                            "window left = 4>",
                            "window<left = 4>>",
                            "window<<left = 4>>",
                            "window<[4]>",
                            "window<left = 1->",
                            "[window<left = 4]>",
                            "[[causal]]",
                            "<causal>",
                            "\"causal\"",
                            "documents(%q)",
                            "window<left = %q>",
                            "causal // window",
                            "#burst.causal",
                            "causal\t",
                            "window<{}>",
                            "window<@ranks>",
                            "window<!q>",
                            "window<'4'>",
                            "=",
                            "causal="})
    EXPECT_EQ(mask(wrong).find("burst_attention: mask '"), 0u) << wrong;
  EXPECT_EQ(mask("[documents, causal, documents]"),
            "burst_attention: mask '[documents, causal, documents]' with two "
            "documents, wanted one, as its tables are arguments once");
  std::string longest = "causal" + std::string(1018, ' ');
  EXPECT_EQ(mask(longest.c_str()), "");
  EXPECT_EQ(mask((longest + " ").c_str()),
            "burst_attention: mask of more than 1024 characters, wanted fewer");
  attention.mask = nullptr;
  attention.score = "[alibi, causal]";
  EXPECT_EQ(refusal(attention),
            "burst_attention: score '[alibi, causal]' with the name 'causal', "
            "wanted one of alibi, softcap, bias, as in [softcap<30.0>, alibi]");
  attention.score = nullptr;
  for (const char *wrong :
       {"", "2ring", "<ring_q>", "[ring_q]", "ring_q ring_kv", "ring_q>",
        "ring_q\n", "ring_q<2>", "ulysses on", "ulysses on 1", "ulysses on []",
        "ulysses on [x]", "ulysses on [1],", "ulysses in", "ulysses in 4",
        "ulysses in x chunks", "ulysses in 4 parts",
        "ulysses in 4 chunks on [0]"}) {
    attention.strategy = wrong;
    std::string error = refusal(attention);
    EXPECT_EQ(error.find("burst_attention: strategy '"), 0u) << error;
    EXPECT_NE(error.find("', wanted a name, as in ring_kv"), std::string::npos)
        << error;
  }
}

/// What a compilation says, and that it is the call that is wrong.
static std::string compileError(const burst_attention &attention) {
  api::Result<api::Program> program = api::Program::compile(attention);
  EXPECT_FALSE(program);
  if (program)
    return "";
  EXPECT_EQ(program.error().code(), BURST_INVALID_ARGUMENT);
  return std::string(program.error().message());
}

TEST(Attention, parametersAreReadByTheCompiler) {
  auto mask = [](const char *value) {
    burst_attention attention = smallAttention();
    attention.mask = value;
    attention.score = "alibi";
    return compileError(attention);
  };
  const std::string place = "burst_attention_text:10:";
  EXPECT_EQ(mask("window<left = x>"),
            place + "26: burst_attention: mask 'window<left = x>': expected "
                    "'>'");
  // Where the parser looks for more, it is still in the line of the field.
  EXPECT_EQ(mask("window"),
            place + "19: burst_attention: mask 'window': custom op "
                    "'burst.attention' mask 'window' takes <left = N, right = "
                    "N>, e.g. window<left = 1023, right = 0>");
  EXPECT_EQ(mask("[causal, prefix<-1>]"),
            place + "27: burst_attention: mask '[causal, prefix<-1>]': custom "
                    "op 'burst.attention' a prefix must be in [0, 2^40], got: "
                    "-1");
  EXPECT_EQ(mask("[causal<3>]"),
            place + "19: burst_attention: mask '[causal<3>]': expected ']'");
  burst_attention attention = smallAttention();
  attention.score = "softcap<0.0>";
  EXPECT_EQ(compileError(attention).find(
                place + "21: burst_attention: score 'softcap<0.0>': custom op "
                        "'burst.attention' cap must be in [2^-126, 2^127]"),
            0u);
  attention.score = "softcap<30>";
  EXPECT_NE(compileError(attention).find("score 'softcap<30>': unexpected "
                                         "decimal integer literal"),
            std::string::npos);
  attention.score = nullptr;
  attention.axes = axis(3, "zigzag 4");
  const std::string order = "16: burst_attention: axes[0].order 'zigzag 4': "
                            "custom op 'burst.attention' a block is for "
                            "striped only, got: zigzag 4";
  EXPECT_EQ(compileError(attention), place + order);
  // The name of the text may hold what separates the line from it.
  auto config = api::make<burst_compile_config>();
  config.name = "C:7:9";
  api::Result<api::Program> program = api::Program::compile(attention, config);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().message(), "C:7:9:10:" + order);
}

/// The compiler's own errors are those of the program.
TEST(Attention, strategiesThatCannotBeCompiled) {
  burst_attention attention = smallAttention();
  const std::pair<const char *, const char *> refused[] = {
      {"best",
       "the strategy best, which is not known: leave it out, or pin one "
       "of ring_kv, ring_q, bi_ring_kv, bi_ring_q, direct_kv, direct_q, "
       "all_gather, gather_q, ring_scores, ulysses"},
      {"ulysses on [1]",
       "the strategy ulysses on [1], on axis 1, over which the sequence is not "
       "sharded"},
      {"ring_kv in 2 chunks",
       "the strategy ring_kv in 2 chunks, and heads go in chunks by ulysses "
       "alone"}};
  for (auto [strategy, why] : refused) {
    attention.strategy = strategy;
    api::Result<api::Program> program = api::Program::compile(attention);
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().code(), BURST_INVALID_PROGRAM);
    EXPECT_NE(program.error().message().find(why), std::string::npos)
        << program.error().message();
  }
}

/// The names here and those of the dialect.
TEST(Attention, knowsWhatTheDialectKnows) {
  auto dialect = [](std::string_view field, std::string_view wrong) {
    std::string text = textOf(smallAttention());
    size_t at = text.find(field);
    text.replace(at, field.size(), wrong);
    api::Result<api::Program> program =
        api::Program::compile(std::string_view(text));
    EXPECT_FALSE(program);
    return program ? "" : std::string(program.error().message());
  };
  EXPECT_NE(dialect("causal", "nope")
                .find("known masks: full, causal, window, prefix, documents; "
                      "scores: alibi, softcap, bias"),
            std::string::npos);
  EXPECT_NE(
      dialect("zigzag", "nope").find("known: contiguous, zigzag, striped"),
      std::string::npos);
}

TEST(Attention, sizeOfTheStruct) {
  burst_attention attention = smallAttention();
  attention.size = offsetof(burst_attention, value_dim);
  attention.pass = 77; // not covered
  EXPECT_EQ(refusal(attention), "");
  attention.size -= sizeof(int64_t);
  EXPECT_NE(refusal(attention).find("burst_attention: size 72"),
            std::string::npos);
  attention.size = sizeof(attention) + 8;
  EXPECT_NE(refusal(attention).find("burst_attention: size"),
            std::string::npos);
  char *text = nullptr;
  EXPECT_EQ(take(burst_attention_text(nullptr, &text)),
            "burst_attention: null");
}

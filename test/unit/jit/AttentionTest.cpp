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

TEST(Attention, everyMask) {
  burst_attention attention = smallAttention();
  attention.order = BURST_CONTIGUOUS;
  attention.mask = BURST_MASK_WINDOW;
  attention.window_left = 5;
  attention.window_right = 2;
  expectRuns(attention);
  attention.mask = BURST_MASK_PREFIX;
  attention.window_left = attention.window_right = 0;
  attention.prefix_length = 11;
  expectRuns(attention);
  attention.mask = BURST_MASK_DOCUMENTS | BURST_MASK_CAUSAL | BURST_MASK_WINDOW;
  attention.prefix_length = 0;
  attention.window_left = 4;
  attention.window_right = -1;
  expectRuns(attention);
}

TEST(Attention, windowsWithoutBoundsKeepEverything) {
  burst_attention attention = smallAttention();
  attention.mask = BURST_MASK_WINDOW;
  attention.window_left = attention.window_right = -1;
  expectRuns(attention);
}

TEST(Attention, everyScoreAndTheScale) {
  burst_attention attention = smallAttention();
  attention.scale = 0.3;
  attention.score = BURST_SCORE_SOFTCAP;
  attention.softcap = 1.5;
  expectRuns(attention);
  attention.score = BURST_SCORE_SOFTCAP | BURST_SCORE_ALIBI;
  expectRuns(attention);
}

TEST(Attention, stripesLengthsAndDimensionsThatDiffer) {
  burst_attention attention = smallAttention();
  attention.order = BURST_STRIPED;
  attention.block = 4;
  attention.query_length = 13;
  attention.value_dim = 5;
  expectRuns(attention);
}

TEST(Attention, oneRank) {
  burst_attention attention = smallAttention();
  attention.num_ranks = 1;
  expectRuns(attention);
}

TEST(Attention, sizesKnownAtRunTime) {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  expectRuns(attention, 17, 31);
  attention.mask = BURST_MASK_DOCUMENTS | BURST_MASK_CAUSAL;
  expectRuns(attention, 24, 24);
}

/// Forward, then backward, on one problem.
static void expectBackwardRuns(burst_attention attention, int64_t queries = 0,
                               int64_t keys = 0) {
  Problem problem(attention, queries, keys);
  api::Program forward = compiled(attention);
  attention.pass = problem.attention.pass = BURST_BACKWARD;
  for (int64_t travel : {BURST_TRAVEL_KEYS, BURST_TRAVEL_QUERIES}) {
    attention.travel = travel;
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

TEST(Attention, backward) {
  burst_attention attention = smallAttention();
  expectBackwardRuns(attention);
  attention.score = BURST_SCORE_SOFTCAP | BURST_SCORE_ALIBI;
  attention.softcap = 1.5;
  attention.order = BURST_STRIPED;
  attention.query_length = 13;
  attention.value_dim = 5;
  expectBackwardRuns(attention);
}

TEST(Attention, backwardOfSizesKnownAtRunTime) {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask = BURST_MASK_DOCUMENTS | BURST_MASK_CAUSAL;
  attention.order = BURST_CONTIGUOUS;
  expectBackwardRuns(attention, 24, 24);
}

TEST(Attention, queriesTravel) {
  burst_attention attention = smallAttention();
  attention.travel = BURST_TRAVEL_QUERIES;
  expectRuns(attention);
  attention.order = BURST_STRIPED;
  attention.query_length = 2; // fewer than ranks
  attention.value_dim = 5;
  expectRuns(attention);
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask = BURST_MASK_DOCUMENTS | BURST_MASK_CAUSAL;
  expectRuns(attention, 17, 17);
}

TEST(Attention, whatTravelsIsInTheText) {
  burst_attention attention = smallAttention();
  auto hasStrategy = [&](int64_t travel, const char *strategy) {
    attention.travel = travel;
    char *text = nullptr;
    EXPECT_EQ(take(burst_attention_text(&attention, &text)), "");
    bool found = std::string(text).find(strategy) != std::string::npos;
    burst_text_destroy(text);
    return found;
  };
  EXPECT_FALSE(hasStrategy(BURST_TRAVEL_CHOSEN, "strategy"));
  EXPECT_TRUE(hasStrategy(BURST_TRAVEL_KEYS, "strategy <ring_kv>"));
  EXPECT_TRUE(hasStrategy(BURST_TRAVEL_QUERIES, "strategy <ring_q>"));
}

TEST(Attention, textIsThatOfTheModule) {
  burst_attention attention = smallAttention();
  attention.score = BURST_SCORE_SOFTCAP;
  attention.softcap = 30;
  char *text = nullptr;
  ASSERT_EQ(take(burst_attention_text(&attention, &text)), "");
  EXPECT_NE(std::string(text).find("burst.attention %q, %k, %v"),
            std::string::npos);
  api::Program program = compiled(std::string_view(text));
  ASSERT_TRUE(program.get());
  EXPECT_EQ(program.name(), "attention");
  EXPECT_EQ(program.numRanks(), 3);
  burst_text_destroy(text);
}

TEST(Attention, everyFieldIsChecked) {
  burst_attention good = smallAttention();
  EXPECT_EQ(refusal(good), "");
  auto with = [&](int64_t burst_attention::*field, int64_t value) {
    burst_attention attention = good;
    attention.*field = value;
    return refusal(attention);
  };
  EXPECT_EQ(with(&burst_attention::num_ranks, 0),
            "burst_attention: num_ranks 0, wanted a number from 1 to "
            "2147483647");
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
  EXPECT_NE(with(&burst_attention::order, 3).find("order 3"),
            std::string::npos);
  EXPECT_EQ(with(&burst_attention::block, 4),
            "burst_attention: block 4, wanted 0 without BURST_STRIPED");
  EXPECT_NE(with(&burst_attention::mask, 16).find("mask 16"),
            std::string::npos);
  EXPECT_EQ(with(&burst_attention::window_left, 4),
            "burst_attention: window_left 4, wanted 0 without "
            "BURST_MASK_WINDOW");
  EXPECT_NE(with(&burst_attention::prefix_length, 4).find("prefix_length 4"),
            std::string::npos);
  EXPECT_NE(with(&burst_attention::score, -1).find("score -1"),
            std::string::npos);
  EXPECT_NE(with(&burst_attention::pass, 2).find("pass 2"), std::string::npos);
  EXPECT_NE(with(&burst_attention::travel, 3).find("travel 3"),
            std::string::npos);
  burst_attention attention = good;
  attention.score = BURST_SCORE_SOFTCAP;
  EXPECT_NE(refusal(attention).find("softcap 0"), std::string::npos);
  attention.softcap = NAN;
  EXPECT_NE(refusal(attention).find("softcap nan"), std::string::npos);
  attention = good;
  attention.softcap = 1;
  EXPECT_NE(refusal(attention).find("BURST_SCORE_SOFTCAP"), std::string::npos);
  attention = good;
  attention.scale = INFINITY;
  EXPECT_NE(refusal(attention).find("scale inf"), std::string::npos);
}

TEST(Attention, sizeOfTheStruct) {
  burst_attention attention = smallAttention();
  attention.size = offsetof(burst_attention, value_dim);
  attention.order = 77; // not covered
  EXPECT_EQ(refusal(attention), "");
  attention.size -= sizeof(int64_t);
  EXPECT_NE(refusal(attention).find("burst_attention: size 64"),
            std::string::npos);
  attention.size = sizeof(attention) + 8;
  EXPECT_NE(refusal(attention).find("burst_attention: size"),
            std::string::npos);
  char *text = nullptr;
  EXPECT_EQ(take(burst_attention_text(nullptr, &text)),
            "burst_attention: null");
}

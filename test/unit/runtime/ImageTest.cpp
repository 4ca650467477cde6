//===- ImageTest.cpp - Tests of images that make no sense -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

using namespace burst::test;

namespace {

class Image : public testing::Test {
protected:
  Program program{2, [](burst_rank *, const burst_table *, void *const *) {}};

  void SetUp() override {
    program.parameters.reserve(3);
    program.tensor("q", {2, -1, 8});
    program.shard(1, contiguous, -1, 1);
    program.extent("s");
    program.tensor("o", {2, 3}, BURST_F64, true);
    program.image.parameters = program.parameters.data();
  }

  std::string check() {
    burst_program *made;
    std::string error = takeCoded(
        burst_program_from_image(&program.image, nullptr, nullptr, &made));
    EXPECT_EQ(made == nullptr, !error.empty());
    burst_program_release(made);
    return error;
  }

  /// The error after a change of the image, which is then undone.
  template <typename T>
  std::string with(T &place, T value) {
    std::swap(place, value);
    std::string error = check();
    std::swap(place, value);
    return error;
  }
};

TEST_F(Image, MakesSense) {
  EXPECT_EQ(check(), "");
  // A later version may know more.
  EXPECT_EQ(with<uint32_t>(program.image.size, 4000), "");
}

TEST_F(Image, NeedsFeatures) {
  burst_image &image = program.image;
  EXPECT_EQ(with<const char *>(image.features, ""), "");
  std::string error =
      with<const char *>(image.features, "avx1024,sse99,avx1024bf64");
  expectContains(error, {"INVALID_PROGRAM test: compiled for ",
                         ", and this processor lacks: avx1024, sse99, "
                         "avx1024bf64"});
  // An earlier version does not say.
  image.features = "avx1024";
  EXPECT_EQ(with<uint32_t>(image.size, offsetof(burst_image, features)), "");
  image.features = nullptr;
}

TEST_F(Image, FitsTheVersion) {
  burst_image &image = program.image;
  EXPECT_EQ(with<int32_t>(image.version_minor, BURST_VERSION_MINOR + 1),
            "INVALID_PROGRAM test: compiled by burst 0.3, this is 0.2.0: "
            "compile it again");
  expectContains(with<int32_t>(image.version_major, BURST_VERSION_MAJOR + 1),
                 {"compiled by burst 1.2, this is 0.2.0"});
  // An earlier image does not say.
  image.version_major = 9;
  EXPECT_EQ(with<uint32_t>(image.size, offsetof(burst_image, version_major)),
            "");
  image.version_major = BURST_VERSION_MAJOR;
}

TEST(Version, FitsAHost) {
  EXPECT_STREQ(burst_version(), BURST_VERSION);
  EXPECT_EQ(burst_check_version(BURST_VERSION_MAJOR, BURST_VERSION_MINOR),
            nullptr);
  burst_error *error =
      burst_check_version(BURST_VERSION_MAJOR, BURST_VERSION_MINOR + 1);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(burst_error_code(error), BURST_INVALID_ARGUMENT);
  EXPECT_STREQ(burst_error_message(error),
               "the host was compiled for burst 0.3, this library is 0.2.0: "
               "compile it with this library's headers, or load libburst of "
               "its version");
  burst_error_destroy(error);
}

TEST_F(Image, ChecksItsHead) {
  burst_image &image = program.image;
  EXPECT_EQ(with<uint32_t>(image.version, BURST_ABI_VERSION + 1),
            "INVALID_PROGRAM image of ABI version 14, wanted 13");
  expectContains(with<uint32_t>(image.size, 8),
                 {"image of 8 bytes, wanted at least "});
  EXPECT_EQ(with<const char *>(image.name, nullptr),
            "INVALID_PROGRAM image: no name");
  EXPECT_EQ(with<const char *>(image.target, nullptr),
            "INVALID_PROGRAM test: no target");
  EXPECT_EQ(with<int64_t>(image.num_ranks, 0),
            "INVALID_PROGRAM test: 0 ranks, wanted at least 1");
  EXPECT_EQ(with<int32_t>(image.num_parameters, -1),
            "INVALID_PROGRAM test: -1 parameters, wanted 0 or more");
  EXPECT_EQ(with<int32_t>(image.num_arguments, 4),
            "INVALID_PROGRAM test: 4 arguments, wanted 0 to 3");
  EXPECT_EQ(with<int32_t>(image.num_arguments, -1),
            "INVALID_PROGRAM test: -1 arguments, wanted 0 to 3");
  EXPECT_EQ(with<const burst_parameter *>(image.parameters, nullptr),
            "INVALID_PROGRAM test: no parameters, wanted 3");
  EXPECT_EQ(with<int64_t>(image.num_groups, 1),
            "INVALID_PROGRAM test: 1 groups without a list, wanted 0 or more "
            "and their list");
  for (burst_group group : {burst_group{2, 3}, {0, 1}, {1, -1}, {1, 1}}) {
    image.num_groups = 1;
    std::string error = with<const burst_group *>(image.groups, &group);
    if (group.num_ranks == 1 && group.stride == 1)
      EXPECT_EQ(error, "");
    else
      expectContains(error, {"INVALID_PROGRAM test: a group of ",
                             "wanted one that divides"});
    image.num_groups = 0;
  }
  EXPECT_EQ(with(image.run, decltype(image.run)()),
            "INVALID_PROGRAM test: no function run");
  EXPECT_EQ(with(image.segments, decltype(image.segments)()),
            "INVALID_PROGRAM test: no function segments");
  burst_program *made;
  EXPECT_EQ(take(burst_program_from_image(nullptr, nullptr, nullptr, &made)),
            "no image");
}

TEST_F(Image, ChecksItsParameters) {
  burst_parameter &q = program.parameters[0], &s = program.parameters[1];
  EXPECT_EQ(with<const char *>(q.name, nullptr),
            "INVALID_PROGRAM test: parameter 0: no name");
  EXPECT_EQ(with<int32_t>(q.kind, 3),
            "INVALID_PROGRAM q: kind 3, wanted 0 to 2");
  EXPECT_EQ(with<int32_t>(q.type, 0), "INVALID_PROGRAM q: there is no type 0");
  EXPECT_EQ(with<int32_t>(q.type, 10),
            "INVALID_PROGRAM q: there is no type 10");
  EXPECT_EQ(with<int32_t>(q.rank, 9),
            "INVALID_PROGRAM q: rank 9, wanted 0 to 8");
  EXPECT_EQ(with<int32_t>(q.rank, -1),
            "INVALID_PROGRAM q: rank -1, wanted 0 to 8");
  EXPECT_EQ(with<const int64_t *>(q.sizes, nullptr),
            "INVALID_PROGRAM q: no sizes, wanted 3");
  const int64_t sizes[] = {2, -2, 8};
  EXPECT_EQ(
      with<const int64_t *>(q.sizes, sizes),
      "INVALID_PROGRAM q: size -2 in dimension 1, wanted 0 or more, or -1");
  EXPECT_EQ(with<int32_t>(q.is_result, 1),
            "INVALID_PROGRAM q: is_result 1 at place 0 behind 2 arguments");
  EXPECT_EQ(with<int32_t>(s.type, BURST_I32),
            "INVALID_PROGRAM s: an extent of type 6, wanted 5");
  EXPECT_EQ(with<int32_t>(s.rank, 1),
            "INVALID_PROGRAM s: a scalar of rank 1, wanted 0");
}

TEST_F(Image, ChecksItsSharding) {
  burst_parameter &q = program.parameters[0];
  EXPECT_EQ(with<int32_t>(q.shard_dim, 3),
            "INVALID_PROGRAM q: sharded dimension 3, wanted -1 to 2");
  EXPECT_EQ(with<int32_t>(q.shard_dim, -2),
            "INVALID_PROGRAM q: sharded dimension -2, wanted -1 to 2");
  EXPECT_EQ(with<int32_t>(q.num_segments, -1),
            "INVALID_PROGRAM q: -1 segments, wanted 0 or more");
  EXPECT_EQ(with<int64_t>(q.extent, -2),
            "INVALID_PROGRAM q: extent -2, wanted 0 or more, or -1");
  EXPECT_EQ(with<int32_t>(q.extent_parameter, -1),
            "INVALID_PROGRAM q: no extent of the sharded dimension");
  EXPECT_EQ(with<int32_t>(q.extent_parameter, 2),
            "INVALID_PROGRAM q: extent in parameter 2, wanted -1 to 1");
  EXPECT_EQ(with<int32_t>(q.extent_parameter, 0),
            "INVALID_PROGRAM q: extent in parameter 0, which is none");
}

TEST_F(Image, ChecksItsSplits) {
  burst_parameter &q = program.parameters[0];
  burst_split splits[] = {{0, 2, 1}, {2, 1, 1}};
  q.splits = splits;
  EXPECT_EQ(with<int32_t>(q.num_splits, 2), "");
  EXPECT_EQ(with<int32_t>(q.num_splits, 4),
            "INVALID_PROGRAM q: 4 dimensions that are split, wanted 0 to 3");
  q.num_splits = 2;
  const std::string other = ", wanted another than the sharded one, by rising "
                            "number, below 3";
  EXPECT_EQ(with<int32_t>(splits[1].dim, 3),
            "INVALID_PROGRAM q: split 1 of dimension 3" + other);
  EXPECT_EQ(with<int32_t>(splits[1].dim, 0),
            "INVALID_PROGRAM q: split 1 of dimension 0" + other);
  EXPECT_EQ(with<int32_t>(splits[0].dim, 1),
            "INVALID_PROGRAM q: split 0 of dimension 1" + other);
  std::string ranks = ", of " + std::to_string(program.image.num_ranks);
  EXPECT_EQ(with<int32_t>(splits[0].parts, 0),
            "INVALID_PROGRAM q: dimension 0 over 0 ranks with a stride of 1" +
                ranks);
  EXPECT_EQ(with<int64_t>(splits[0].stride, 2),
            "INVALID_PROGRAM q: dimension 0 over 2 ranks with a stride of 2" +
                ranks);
}

TEST_F(Image, ChecksWhatIsPartial) {
  burst_parameter &q = program.parameters[0], &o = program.parameters[2];
  const std::string wanted =
      "is_partial 1, wanted 0 but for results that are whole tensors of f32 or "
      "f64";
  EXPECT_EQ(with<int32_t>(o.is_partial, 1), "");
  EXPECT_EQ(with<int32_t>(q.is_partial, 1), "INVALID_PROGRAM q: " + wanted);
  o.is_partial = 1;
  EXPECT_EQ(with<int32_t>(o.type, BURST_BF16), "INVALID_PROGRAM o: " + wanted);
  o.extent = 2;
  EXPECT_EQ(with<int32_t>(o.shard_dim, 0), "INVALID_PROGRAM o: " + wanted);
}

TEST_F(Image, TellsWhatItIs) {
  burst_program *made = program.get();
  EXPECT_STREQ(burst_program_name(made), "test");
  EXPECT_STREQ(burst_program_target(made), "any");
  EXPECT_EQ(burst_program_num_ranks(made), 2);
  EXPECT_EQ(burst_program_num_parameters(made), 3);
  EXPECT_EQ(burst_program_num_arguments(made), 2);
  EXPECT_STREQ(burst_program_parameter(made, 2)->name, "o");
  EXPECT_EQ(burst_program_parameter(made, 3), nullptr);
  EXPECT_EQ(burst_program_parameter(made, -1), nullptr);
}

TEST_F(Image, IsReleasedWithItsLastReference) {
  int releases = 0;
  burst_program *made;
  ASSERT_EQ(
      take(burst_program_from_image(
          &program.image, [](void *context) { ++*static_cast<int *>(context); },
          &releases, &made)),
      "");
  burst_program_retain(made);
  burst_program_release(made);
  EXPECT_EQ(releases, 0);
  burst_program_release(made);
  EXPECT_EQ(releases, 1);
  burst_program_release(nullptr);
}

} // namespace

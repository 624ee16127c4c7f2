#include "trace/reader/id_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace gofer::tool {
namespace {

TEST(IdMap, BehavesLikeAMapOfTheStandardLibrary) {
  std::mt19937_64 random(1);
  IdMap<uint64_t> map;
  std::unordered_map<uint64_t, uint64_t> model;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t key = random() % 1000 * (i % 2 == 0 ? 1 : uint64_t{1} << 40);
    switch (random() % 3) {
      case 0:
        map.erase(key);
        model.erase(key);
        break;
      case 1:
        map[key] = i;
        model[key] = i;
        break;
      default: {
        const uint64_t* const found = map.find(key);
        const auto expected = model.find(key);
        ASSERT_EQ(found != nullptr, expected != model.end());
        if (found != nullptr) {
          ASSERT_EQ(*found, expected->second);
        }
      }
    }
    ASSERT_EQ(map.size(), model.size());
  }
  size_t visited = 0;
  map.each([&](uint64_t key, uint64_t value) {
    ++visited;
    EXPECT_EQ(model.at(key), value);
  });
  EXPECT_EQ(visited, model.size());
}

TEST(IdMap, NoneIsNeverFound) {
  IdMap<int> map;
  EXPECT_EQ(map.find(none), nullptr);
  map[1] = 1;
  EXPECT_EQ(map.find(none), nullptr);
  map.erase(none);
  EXPECT_EQ(map.size(), 1u);
}

}  // namespace
}  // namespace gofer::tool

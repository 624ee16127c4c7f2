// The texts of debug::metrics(): what Prometheus reads, by a strict parser here and by promtool
// where it is installed, and JSON.
// gofer-test: once
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/metrics/table.h"

namespace gofer {
namespace {

using debug::metrics_snapshot;
using debug::time_histogram;

// --- A parser of the text format, which takes nothing but what the format allows.

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Family {
  std::string type;
  std::string help;
  std::vector<Sample> samples;
};

class Parser {
 public:
  explicit Parser(const std::string& text) { parse(text); }

  std::map<std::string, Family> families;
  std::string error;  // the first one

 private:
  void fail(const std::string& what) {
    if (error.empty()) error = "line " + std::to_string(line_number_) + ": " + what;
  }

  static bool is_name(std::string_view s, bool colons) {
    const auto first = [&](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (colons && c == ':');
    };
    return !s.empty() && first(s[0]) && std::all_of(s.begin(), s.end(), [&](char c) {
      return first(c) || std::isdigit(static_cast<unsigned char>(c));
    });
  }

  void parse(const std::string& text) {
    if (text.empty() || text.back() != '\n') fail("the last line does not end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++line_number_;
      if (line.starts_with("# HELP ")) {
        parse_head(line.substr(7), &Family::help);
      } else if (line.starts_with("# TYPE ")) {
        parse_head(line.substr(7), &Family::type);
      } else if (line.empty() || line[0] == '#') {
        fail("neither a head nor a sample");
      } else {
        parse_sample(line);
      }
    }
  }

  void parse_head(const std::string& rest, std::string Family::*field) {
    const auto space = rest.find(' ');
    const std::string name = rest.substr(0, space);
    if (space == std::string::npos || !is_name(name, true)) return fail("no name");
    if (field == &Family::help && families.contains(name)) return fail(name + " has two parts");
    Family& family = families[name];
    if (!(family.*field).empty()) return fail("a second head");
    if (!family.samples.empty()) return fail("a head behind samples");
    family.*field = rest.substr(space + 1);
    current_ = name;
    static const std::set<std::string> types{"counter", "gauge", "histogram"};
    if (field == &Family::type && !types.contains(family.type)) fail("type " + family.type);
  }

  void parse_sample(const std::string& line) {
    Sample sample;
    const auto end = line.find_first_of("{ ");
    sample.name = line.substr(0, end);
    if (end == std::string::npos || !is_name(sample.name, true)) return fail("no name");
    std::size_t at = end;
    if (line[at] == '{') {
      const auto close = line.find('}', at);
      if (close == std::string::npos) return fail("labels do not end");
      parse_labels(line.substr(at + 1, close - at - 1), sample);
      at = close + 1;
    }
    if (line[at] != ' ') return fail("no space before the value");
    sample.value = parse_value(line.substr(at + 1));
    Family& family = families[current_];
    std::string expected = current_;
    if (family.type == "histogram") {
      for (const char* suffix : {"_bucket", "_sum", "_count"}) {
        if (sample.name == current_ + suffix) expected = sample.name;
      }
    }
    if (sample.name != expected) return fail(sample.name + " is not of " + current_);
    for (const Sample& other : family.samples) {
      if (other.name == sample.name && other.labels == sample.labels) fail("the same twice");
    }
    family.samples.push_back(sample);
  }

  void parse_labels(const std::string& text, Sample& sample) {
    std::istringstream labels(text);
    for (std::string label; std::getline(labels, label, ',');) {
      const auto equals = label.find('=');
      const std::string name = label.substr(0, equals);
      if (equals == std::string::npos || !is_name(name, false)) return fail("label " + label);
      const std::string value = label.substr(equals + 1);
      if (value.size() < 2 || value.front() != '"' || value.back() != '"') return fail("no quotes");
      const std::string inner = value.substr(1, value.size() - 2);
      if (inner.find_first_of("\"\\\n") != std::string::npos) return fail("quotes within");
      if (!sample.labels.emplace(name, inner).second) fail("a label twice");
    }
  }

  double parse_value(const std::string& text) {
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc() || end != text.data() + text.size()) fail("value " + text);
    return value;
  }

  std::string current_;
  int line_number_ = 0;
};

double le_of(const Sample& bucket) {
  const std::string& le = bucket.labels.at("le");
  return le == "+Inf" ? std::numeric_limits<double>::infinity() : std::strtod(le.c_str(), nullptr);
}

// A snapshot in which each number is another one.
metrics_snapshot all_different() {
  metrics_snapshot m{};
  std::uint64_t n = 1000;
  for (const internal::Number& number : internal::numbers()) m.*number.value = ++n;
  for (const internal::NumberOfTimes& times : internal::histograms()) {
    for (std::size_t i = 0; i < time_histogram::bucket_count; ++i) {
      (m.*times.value).counts[i] = ++n;
      (m.*times.value).sum_ns += n * 1000;
    }
  }
  return m;
}

class PrometheusText : public testing::TestWithParam<bool> {
 protected:
  metrics_snapshot m_ = GetParam() ? all_different() : run([] {
    wait_group group;
    for (int i = 0; i < 1000; ++i) group.go([] { yield(); });
    group.wait();
    return debug::metrics();
  });
  Parser parsed_{debug::prometheus(m_)};
};
INSTANTIATE_TEST_SUITE_P(OfASnapshot, PrometheusText, testing::Bool(),
                         [](const auto& info) { return info.param ? "Made" : "Taken"; });

TEST_P(PrometheusText, IsReadByAStrictParser) {
  EXPECT_EQ(parsed_.error, "");
  EXPECT_GT(parsed_.families.size(), 30u);
  for (const auto& [name, family] : parsed_.families) {
    EXPECT_TRUE(name.starts_with("gofer_")) << name;
    EXPECT_FALSE(family.type.empty()) << name;
    EXPECT_GT(family.help.size(), 10u) << name;
    EXPECT_FALSE(family.samples.empty()) << name;
    EXPECT_EQ(family.type == "counter", name.ends_with("_total")) << name;
  }
}

TEST_P(PrometheusText, HasEveryNumber) {
  for (const internal::Number& number : internal::numbers()) {
    const Family& family = parsed_.families[number.family];
    int found = 0;
    for (const Sample& s : family.samples) {
      std::string labels;
      for (const auto& [name, value] : s.labels) labels += name + "=\"" + value + "\"";
      if (labels != number.label) continue;
      ++found;
      EXPECT_EQ(s.value, static_cast<double>(m_.*number.value)) << number.key;
    }
    EXPECT_EQ(found, 1) << number.key;
  }
}

TEST_P(PrometheusText, HasCumulativeBuckets) {
  for (const internal::NumberOfTimes& times : internal::histograms()) {
    const std::string name = times.family;
    const time_histogram& h = m_.*times.value;
    const Family& family = parsed_.families[name];
    EXPECT_EQ(family.type, "histogram");
    double le = -1;
    double count = 0;
    int buckets = 0;
    for (const Sample& s : family.samples) {
      if (s.name != name + "_bucket") {
        const bool is_sum = s.name == name + "_sum";
        EXPECT_DOUBLE_EQ(
            s.value, is_sum ? static_cast<double>(h.sum_ns) / 1e9 : static_cast<double>(h.count()));
        continue;
      }
      ++buckets;
      EXPECT_GT(le_of(s), le);
      EXPECT_GE(s.value, count);
      le = le_of(s);
      count = s.value;
      std::uint64_t expected = 0;
      for (std::size_t i = 0; i < time_histogram::bucket_count; ++i) {
        if (static_cast<double>(time_histogram::begin_ns(i)) < le * 1e9) expected += h.counts[i];
      }
      EXPECT_EQ(s.value, static_cast<double>(expected)) << name << " " << le;
    }
    EXPECT_TRUE(std::isinf(le));
    EXPECT_EQ(count, static_cast<double>(h.count()));
    EXPECT_GE(buckets, 10);
    EXPECT_LE(buckets, 20);
    EXPECT_EQ(family.samples.size(), static_cast<std::size_t>(buckets) + 2);
  }
}

TEST_P(PrometheusText, IsApprovedByPromtool) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  std::string path = testing::TempDir() + "gofer-metrics-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << debug::prometheus(m_);
  const std::string command = "promtool check metrics <" + path + " 2>&1";
  std::FILE* tool = popen(command.c_str(), "r");
  ASSERT_NE(tool, nullptr);
  std::string said;
  for (int c; (c = std::fgetc(tool)) != EOF;) said += static_cast<char>(c);
  EXPECT_EQ(pclose(tool), 0) << said;
  EXPECT_EQ(said, "");
  unlink(path.c_str());
}

// docs/DEBUGGING.md tells what to look at: there is all that it names.
TEST_P(PrometheusText, HasWhatTheDocumentationNames) {
  std::ifstream file(GOFER_SOURCE_DIR "/docs/DEBUGGING.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const std::string prometheus = debug::prometheus(m_);
  int named = 0;
  for (auto at = document.find("gofer_"); at != document.npos; at = document.find("gofer_", at)) {
    auto end = at;
    while (std::isalnum(static_cast<unsigned char>(document[end])) || document[end] == '_') ++end;
    const std::string name = document.substr(at, end - at);
    std::string labels;
    if (document[end] == '{') labels = document.substr(end, document.find('}', end) + 1 - end);
    at = end;
    constexpr std::string_view others[] = {"gofer_preemptible", "gofer_main", "gofer_entry"};
    if (std::ranges::count(others, name) != 0 || name.ends_with("_")) continue;  // a pattern
    ++named;
    EXPECT_NE(prometheus.find("\n" + name + (labels.empty() ? "" : labels + " ")), prometheus.npos)
        << name << labels;
  }
  EXPECT_GT(named, 15);
}

TEST(PrometheusParser, FindsWhatIsWrong) {
  const std::string good =
      "# HELP a_total Something good.\n# TYPE a_total counter\na_total{b=\"c\"} 1\n";
  EXPECT_EQ(Parser(good).error, "");
  for (const char* bad :
       {"", "a 1", "a 1\n", "# TYPE a counter\nb 1\n", "# TYPE a counter\na  1\n",
        "# TYPE a counter\na 1x\n", "# TYPE a counter\na{b=c} 1\n", "# TYPE a counter\na 1\na 1\n",
        "# TYPE a counter\na{b=\"c\" 1\n", "# TYPE a thing\na 1\n", "# TYPE 1a counter\n1a 1\n"}) {
    EXPECT_NE(Parser(bad).error, "") << bad;
  }
  EXPECT_NE(Parser(good + good).error, "");
}

// --- JSON. The library has a parser of none; what is written has a fixed shape: a key a line.

std::map<std::string, std::string> lines_of_json(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "{" || line == "}") continue;
    if (line.ends_with(",")) line.pop_back();
    const auto colon = line.find("\": ");
    if (!line.starts_with("  \"") || colon == std::string::npos) return {{"bad line", line}};
    found[line.substr(3, colon - 3)] = line.substr(colon + 3);
  }
  return found;
}

TEST(MetricsJson, HasEveryNumberByGosName) {
  const metrics_snapshot m = all_different();
  const std::string text = debug::metrics_json(m);
  EXPECT_TRUE(text.starts_with("{\n")) << text;
  EXPECT_TRUE(text.ends_with("]}\n}\n")) << text;
  EXPECT_EQ(text.find(",\n}"), std::string::npos);
  const auto json = lines_of_json(text);
  EXPECT_EQ(json.size(), internal::numbers().size() + internal::histograms().size());
  for (const internal::Number& number : internal::numbers()) {
    ASSERT_TRUE(json.contains(number.key)) << number.key;
    EXPECT_EQ(json.at(number.key), std::to_string(m.*number.value)) << number.key;
  }
  for (const char* gos :
       {"/sched/gomaxprocs:threads", "/sched/goroutines:goroutines",
        "/sched/goroutines/running:goroutines", "/sched/goroutines/runnable:goroutines",
        "/sched/goroutines/waiting:goroutines", "/sched/goroutines/not-in-go:goroutines",
        "/sched/goroutines-created:goroutines", "/sched/latencies:seconds",
        "/sched/threads/total:threads", "/sched/pauses/stopping/other:seconds",
        "/sched/pauses/total/other:seconds"}) {
    EXPECT_TRUE(json.contains(gos)) << gos;
  }
}

TEST(MetricsJson, HasTheBucketsThatHaveTimes) {
  metrics_snapshot m{};
  m.latency.counts[time_histogram::bucket_of(1024)] = 5;
  m.latency.counts[time_histogram::bucket_of(1'048'576)] = 7;
  m.latency.sum_ns = 2'000'000'000;
  const auto json = lines_of_json(debug::metrics_json(m));
  EXPECT_EQ(json.at("/sched/latencies:seconds"),
            "{\"count\": 12, \"sum\": 2, \"buckets\": [[1.024e-06, 5], [0.001048576, 7]]}");
  EXPECT_EQ(json.at("/gofer/sched/slices:seconds"), "{\"count\": 0, \"sum\": 0, \"buckets\": []}");
}

TEST(MetricsJson, IsReadByPython) {
  if (std::system("command -v python3 >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "python3 is not installed";
  }
  std::FILE* python = popen(
      "python3 -c 'import json, sys; sys.exit(0 if len(json.load(sys.stdin)) > 40 else 1)'", "w");
  ASSERT_NE(python, nullptr);
  std::fputs(debug::metrics_json(all_different()).c_str(), python);
  EXPECT_EQ(pclose(python), 0);
}

}  // namespace
}  // namespace gofer

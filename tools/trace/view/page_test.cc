#include "trace/view/page.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

namespace gofer::tool {
namespace {

std::string from_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const uint32_t digit = c >= 'a'   ? static_cast<uint32_t>(c - 'a' + 26)
                           : c >= 'A' ? static_cast<uint32_t>(c - 'A')
                           : c >= '0' ? static_cast<uint32_t>(c - '0' + 52)
                           : c == '+' ? 62u
                                      : 63u;
    bits = bits << 6 | digit;
    count += 6;
    if (count >= 8) out += static_cast<char>(bits >> (count -= 8));
  }
  return out;
}

std::string gunzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

/// The contents of the page's data elements, with what they are.
std::vector<std::string> elements_of(const std::string& page) {
  std::vector<std::string> result;
  const std::string head = "<script type=\"text/plain\" data-trace=\"";
  for (size_t at = page.find(head); at != std::string::npos; at = page.find(head, at)) {
    at += head.size();
    const size_t name_end = page.find("\">", at);
    const size_t end = page.find("</script>", at);
    result.push_back(page.substr(at, name_end - at) + ":" +
                     gunzip(from_base64(page.substr(name_end + 2, end - name_end - 2))));
  }
  return result;
}

TEST(Page, HasTheBlocksAndTheIndexInTheViewer) {
  std::string page;
  PageWriter writer([&](std::string_view text) { page += text; });
  const std::string zeros(300'000, '\0');
  writer.block("one");
  writer.block("");
  writer.block(zeros);
  writer.finish("{}");
  EXPECT_EQ(elements_of(page),
            (std::vector<std::string>{"block:one", "block:", "block:" + zeros, "index:{}"}));
  EXPECT_TRUE(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
}

}  // namespace
}  // namespace gofer::tool

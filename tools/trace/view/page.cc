#include "trace/view/page.h"

#include <zlib.h>

#include <cstdint>
#include <new>
#include <string>

// viewer.S: the file viewer.html.
extern "C" const char gofer_viewer_begin[];  // NOLINT
extern "C" const char gofer_viewer_end[];    // NOLINT

namespace gofer::tool {
namespace {

constexpr std::string_view place_of_data = "<!--trace-->";

std::string_view viewer() {
  return {gofer_viewer_begin, static_cast<size_t>(gofer_viewer_end - gofer_viewer_begin)};
}

/// The fastest level: columns of varints shrink to half by it, and the slowest level saves a tenth
/// more.
std::string gzip(std::string_view bytes) {
  constexpr int level = 1, gzip_format = 15 + 16, memory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip_format, memory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);  // deflateBound has left room enough
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= count ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

}  // namespace

PageWriter::PageWriter(Output output) : output_(std::move(output)) {
  output_(viewer().substr(0, viewer().find(place_of_data)));
}

void PageWriter::element(std::string_view kind, std::string_view bytes) {
  std::string text = "<script type=\"text/plain\" data-trace=\"";
  text += kind;
  text += "\">";
  text += base64(gzip(bytes));
  text += "</script>\n";
  output_(text);
}

void PageWriter::finish(std::string_view index) {
  element("index", index);
  const size_t at = viewer().find(place_of_data);
  if (at != std::string_view::npos) output_(viewer().substr(at + place_of_data.size()));
}

}  // namespace gofer::tool

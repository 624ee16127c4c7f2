// Visibility of the library's symbols: everything is hidden but what carries GOFER_API.
#pragma once

#define GOFER_API __attribute__((visibility("default")))

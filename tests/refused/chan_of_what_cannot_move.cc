// refused: static.assert.*chan<T>: T needs a move constructor
//
#include <gofer/chan.h>
#include <gofer/mutex.h>

gofer::chan<gofer::mutex> c(1);

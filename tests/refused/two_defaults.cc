// refused: static.assert.*select: at most one on_default
//
#include <gofer/select.h>

void twice() { gofer::select(gofer::on_default(), gofer::on_default()); }

/* Programs that came with this one and lie beside it. */
#pragma once

char *stepd_helper(const char *name); /* its path; NULL when that cannot be said. Caller frees. */

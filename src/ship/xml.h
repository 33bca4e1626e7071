/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of elements in replies of S3 and STS, which are small and flat. Any bytes may be given, with a zero byte at
 * their end. */
#ifndef WEFT_SHIP_XML_H
#define WEFT_SHIP_XML_H

#include <stddef.h>

/* The text of the first <tag> from `at` on, and before `end` (NULL: no bound), with the five entities and numbers
 * decoded. Answers what comes behind the element, or NULL when there is none or it does not fit. */
const char *weft__xml_text(const char *at, const char *end, const char *tag, char *to, size_t bytes);
/* Where the first element <tag> from `at` on begins, behind its tag, and where it ends. 0: there is none. */
int weft__xml_element(const char **at, const char **end, const char *tag);

#endif

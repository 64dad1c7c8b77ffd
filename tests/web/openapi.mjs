// Whether the document on standard input is OpenAPI: exit status 1 and what is wrong, or 0 and the
// version of OpenAPI that it follows.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";

const validator = new Validator();
const result = await validator.validate(JSON.parse(readFileSync(0, "utf8")));
if (!result.valid) {
	console.log(JSON.stringify(result.errors, null, 1));
	process.exit(1);
}
console.log(validator.version);

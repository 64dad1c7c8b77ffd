/* MESSAGE_IDs of the agent's journal entries; units/moe.catalog tells operators what to do about each. */
#pragma once

#define MSG_STEP_START "5f0c5f0d3d2b4d5c9a54b6f2f3a4c101"
#define MSG_STEP_STOP "5f0c5f0d3d2b4d5c9a54b6f2f3a4c102"
#define MSG_STEP_ADOPTED "5f0c5f0d3d2b4d5c9a54b6f2f3a4c103"
#define MSG_STEPD_LOST "5f0c5f0d3d2b4d5c9a54b6f2f3a4c104"
#define MSG_STEPD_SILENT "5f0c5f0d3d2b4d5c9a54b6f2f3a4c105"
#define MSG_DISCOVERY "5f0c5f0d3d2b4d5c9a54b6f2f3a4c106"
#define MSG_CONNECTED "5f0c5f0d3d2b4d5c9a54b6f2f3a4c107"
#define MSG_REFUSED "5f0c5f0d3d2b4d5c9a54b6f2f3a4c108"
#define MSG_UNKILLABLE "5f0c5f0d3d2b4d5c9a54b6f2f3a4c109"
#define MSG_STEP_GONE "5f0c5f0d3d2b4d5c9a54b6f2f3a4c10a"
